// Sets what the first paint depends on: the theme that was chosen here, and whether the list of Services will be shown, whose
// outline is in the page. Not a module: modules run later, and it would flash.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('theme');
  } catch {
    /* Storage may be forbidden; then the system decides. */
  }
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  if (!/^(#token=.*|#?\/?|#\/services\/?(\?.*)?)$/.test(location.hash)) document.documentElement.dataset.at = 'elsewhere';
})();
