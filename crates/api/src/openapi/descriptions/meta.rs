//! What every object has, the objects of the protocol, and Namespace.

use super::{Text, of};

pub(super) const TEXTS: &[Text] = &[
    of(
        "meta.v1.ObjectMeta",
        "What every object has.",
        &[
            ("name", "The name of the object, unique among objects of its kind in its namespace. It cannot change."),
            ("generateName", "The beginning of a name that the server completes, if name is left out."),
            ("namespace", "The namespace of the object. It cannot change."),
            ("selfLink", "Deprecated: no longer written."),
            ("uid", "A value that no other object ever has, in time and space. Written by the system."),
            (
                "resourceVersion",
                "The version of the object. A write that names it fails if the object has changed since. Written by the system; its form is nobody's business.",
            ),
            ("generation", "Counts the changes to what the object should be. Written by the system."),
            ("creationTimestamp", "When the object was made. Written by the system."),
            (
                "deletionTimestamp",
                "When deletion was asked for, and from when on the object goes once its finalizers are done. Written by the system.",
            ),
            (
                "deletionGracePeriodSeconds",
                "How many seconds the object has to end in good order. Written by the system.",
            ),
            ("labels", "Names and values by which objects are selected and grouped."),
            ("annotations", "Names and values that tools keep with the object. They cannot be selected by."),
            ("ownerReferences", "The objects that this one depends on. When all of them are gone, so is this one."),
            ("finalizers", "Who must clean up before the object may go. Each removes its own entry."),
            ("managedFields", "Which manager set which fields. Written by the system."),
        ],
    ),
    of(
        "meta.v1.OwnerReference",
        "An object that another one depends on, in the same namespace or in none.",
        &[
            ("apiVersion", "The group and version of the owner."),
            ("kind", "The kind of the owner."),
            ("name", "The name of the owner."),
            ("uid", "The UID of the owner."),
            ("controller", "Whether this owner is the one that manages the object."),
            ("blockOwnerDeletion", "Whether the owner must wait for this object when it is deleted in the foreground."),
        ],
    ),
    of(
        "meta.v1.ManagedFieldsEntry",
        "The fields that one manager set in one way.",
        &[
            ("manager", "The manager's name."),
            ("operation", "Apply or Update."),
            ("apiVersion", "The version of the API in which the fields are named."),
            ("time", "When the entry last changed."),
            ("fieldsType", "The form of the fields; always FieldsV1."),
            ("fieldsV1", "The fields, as a tree of their names."),
            ("subresource", "The subresource that was written, empty for the object itself."),
        ],
    ),
    of(
        "meta.v1.ListMeta",
        "What every list has.",
        &[
            ("selfLink", "Deprecated: no longer written."),
            ("resourceVersion", "The version of the whole list, from which a watch can go on."),
            ("continue", "Set if there is more: pass it back to get the next page."),
            ("remainingItemCount", "About how many objects are left after this page."),
            ("shardInfo", "Which part of all objects this list is, if a part was asked for."),
        ],
    ),
    of("meta.v1.ShardInfo", "Which part of all objects a list is.", &[("selector", "The selector of the part.")]),
    of(
        "meta.v1.Condition",
        "One thing that is known about an object.",
        &[
            ("type", "What is known, in CamelCase."),
            ("status", "True, False or Unknown."),
            ("observedGeneration", "The generation of the object that this was found out about."),
            ("lastTransitionTime", "When the status last changed."),
            ("reason", "Why, as one word in CamelCase."),
            ("message", "Why, for people."),
        ],
    ),
    of(
        "meta.v1.LabelSelector",
        "Selects objects by their labels. All requirements must hold; no requirements select everything.",
        &[("matchLabels", "Labels that an object must have."), ("matchExpressions", "Further requirements.")],
    ),
    of(
        "meta.v1.LabelSelectorRequirement",
        "One requirement on a label.",
        &[
            ("key", "The label."),
            ("operator", "In, NotIn, Exists or DoesNotExist."),
            ("values", "The values for In and NotIn."),
        ],
    ),
    of(
        "meta.v1.DeleteOptions",
        "How an object is deleted.",
        &[
            ("gracePeriodSeconds", "Seconds to wait before the object goes; 0 is at once."),
            ("preconditions", "What must hold, else nothing is deleted."),
            ("orphanDependents", "Deprecated: use propagationPolicy."),
            ("propagationPolicy", "What becomes of dependent objects: Orphan, Background or Foreground."),
            ("dryRun", "With the value All, nothing is deleted."),
            ("ignoreStoreReadErrorWithClusterBreakingPotential", "Delete an object that can no longer be read."),
        ],
    ),
    of(
        "meta.v1.Preconditions",
        "What must hold before something is done to an object.",
        &[("uid", "The UID the object must have."), ("resourceVersion", "The version the object must have.")],
    ),
    of(
        "meta.v1.Status",
        "What became of a request.",
        &[
            ("metadata", "What every list has."),
            ("status", "Success or Failure."),
            ("message", "What happened, for people."),
            ("reason", "What happened, as one word in CamelCase."),
            ("details", "More about it, for programs."),
            ("code", "The HTTP status code."),
        ],
    ),
    of(
        "meta.v1.StatusDetails",
        "More about a failure.",
        &[
            ("name", "The name of the object."),
            ("group", "The API group of the object."),
            ("kind", "The kind or resource of the object."),
            ("uid", "The UID of the object."),
            ("causes", "Each single mistake."),
            ("retryAfterSeconds", "When to try again."),
        ],
    ),
    of(
        "meta.v1.StatusCause",
        "One mistake.",
        &[
            ("reason", "What is wrong, as one word in CamelCase."),
            ("message", "What is wrong, for people."),
            ("field", "The field it is about."),
        ],
    ),
    of(
        "core.v1.Namespace",
        "A Namespace is a room for names: objects in different namespaces may have the same one.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            ("spec", "What holds the namespace back when it is deleted."),
            ("status", "Whether the namespace is in use or on its way out. Written by the system."),
        ],
    ),
    of(
        "core.v1.NamespaceSpec",
        "What holds a namespace back when it is deleted.",
        &[("finalizers", "Who must clean up before the namespace may go.")],
    ),
    of(
        "core.v1.NamespaceStatus",
        "Whether a namespace is in use.",
        &[
            ("phase", "Active, or Terminating when the namespace is on its way out."),
            ("conditions", "What is known about the namespace, one entry a type."),
        ],
    ),
    of(
        "core.v1.NamespaceCondition",
        "One thing that is known about a namespace.",
        &[
            ("type", "What is known."),
            ("status", "True, False or Unknown."),
            ("lastTransitionTime", "When the status last changed."),
            ("reason", "Why, as one word in CamelCase."),
            ("message", "Why, for people."),
        ],
    ),
];
