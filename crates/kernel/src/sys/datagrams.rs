//! recvmmsg(2) and sendmmsg(2) with the address a datagram was sent to: so that the answer leaves from there.

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::relay::{read_address, write_address};
use super::{retry_interrupted, set_option};

/// How many datagrams one call takes or sends at most.
pub(crate) const MANY: usize = 64;

/// Room for the one control message there is: the address a datagram was sent to, of either version.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// The arrays of one call. They stay, so that nothing is made anew for a batch.
pub(crate) struct Headers {
    addresses: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

/// A datagram that came: its length, who sent it, and the address it was sent to, where the kernel says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) length: usize,
    pub(crate) from: Option<SocketAddr>,
    pub(crate) to: Option<IpAddr>,
}

/// A datagram to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parcel<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<IpAddr>,
}

/// Asks the kernel to say which address datagrams were sent to.
pub(crate) fn tell_destination(fd: BorrowedFd<'_>, v4: bool) -> io::Result<()> {
    match v4 {
        true => set_option(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        false => set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

impl Headers {
    /// Room for so many datagrams, [`MANY`] at most.
    pub(crate) fn new(count: usize) -> Headers {
        let count = count.min(MANY);
        // SAFETY: sockaddr_storage, iovec and mmsghdr hold integers and pointers only, for which all bits zero is a value.
        let (address, part, header) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Headers {
            addresses: vec![address; count],
            controls: vec![Control([0; 64]); count],
            parts: vec![part; count],
            headers: vec![header; count],
        }
    }

    /// Waits for a datagram, and takes those that are there, one after the other into equal parts of `buffer`.
    pub(crate) fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        size: usize,
        found: &mut Vec<Found>,
    ) -> io::Result<()> {
        found.clear();
        let mut room = 0;
        for (index, chunk) in buffer.chunks_exact_mut(size.max(1)).take(self.headers.len()).enumerate() {
            self.parts[index] = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() };
            self.point(index, size_of::<libc::sockaddr_storage>() as libc::socklen_t, size_of::<Control>());
            room = index + 1;
        }
        let count = loop {
            let (headers, flags) = (self.headers.as_mut_ptr(), libc::MSG_WAITFORONE);
            // SAFETY: the first `room` headers point to an address, a control buffer and a part of the buffer each, which
            // are valid for writes of the lengths given and outlive the call.
            let count =
                unsafe { libc::recvmmsg(fd.as_raw_fd(), headers, room as libc::c_uint, flags, ptr::null_mut()) };
            if count >= 0 {
                break count.unsigned_abs() as usize;
            }
            retry_interrupted()?;
        };
        for (header, address) in self.headers.iter().zip(&self.addresses).take(count) {
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let from = read_address(address).filter(|_| !cut);
            found.push(Found { length: header.msg_len as usize, from, to: destination(&header.msg_hdr) });
        }
        Ok(())
    }

    /// Sends datagrams, without waiting; how many of the first ones went.
    pub(crate) fn send<'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        parcels: impl Iterator<Item = Parcel<'a>>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, parcel) in parcels.take(self.headers.len()).enumerate() {
            let (address, length) = write_address(parcel.to);
            self.addresses[index] = address;
            let bytes = parcel.bytes.as_ptr().cast_mut().cast();
            self.parts[index] = libc::iovec { iov_base: bytes, iov_len: parcel.bytes.len() };
            let control = parcel.from.map_or(0, |from| write_source(&mut self.controls[index], from));
            self.point(index, length, control);
            count = index + 1;
        }
        if count == 0 {
            return Ok(0);
        }
        loop {
            let headers = self.headers.as_mut_ptr();
            // SAFETY: the first `count` headers point to an address, a control buffer and the bytes of a parcel each, which
            // are valid for reads of the lengths given and outlive the call; the kernel does not write to them.
            let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers, count as libc::c_uint, libc::MSG_DONTWAIT) };
            if sent >= 0 {
                return Ok(sent.unsigned_abs() as usize);
            }
            retry_interrupted()?;
        }
    }

    /// Points a header at its address, control buffer and part.
    fn point(&mut self, index: usize, name_length: libc::socklen_t, control_length: usize) {
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = ptr::from_mut(&mut self.addresses[index]).cast();
        header.msg_namelen = name_length;
        header.msg_iov = ptr::from_mut(&mut self.parts[index]);
        header.msg_iovlen = 1;
        let control = ptr::from_mut(&mut self.controls[index]).cast();
        header.msg_control = if control_length == 0 { ptr::null_mut() } else { control };
        header.msg_controllen = control_length as _;
        header.msg_flags = 0;
    }
}

/// The address a datagram was sent to.
fn destination(header: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: the kernel filled the header and its control buffer, which both outlive the call.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: it is not null and was found by the CMSG functions, so it lies within the control buffer.
        let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
        if (level, kind) == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            // SAFETY: the kernel writes an in_pktinfo there; it may be unaligned.
            let info = unsafe { libc::CMSG_DATA(message).cast::<libc::in_pktinfo>().read_unaligned() };
            return Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
        }
        if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            // SAFETY: the kernel writes an in6_pktinfo there; it may be unaligned.
            let info = unsafe { libc::CMSG_DATA(message).cast::<libc::in6_pktinfo>().read_unaligned() };
            return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
        }
        // SAFETY: as for the first one.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

/// Writes the control message that says where a datagram is to leave from; its length.
fn write_source(control: &mut Control, from: IpAddr) -> usize {
    match from {
        IpAddr::V4(v4) => {
            let address = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
            let any = libc::in_addr { s_addr: 0 };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: any };
            write_message(control, (libc::IPPROTO_IP, libc::IP_PKTINFO), info)
        }
        IpAddr::V6(v6) => {
            let address = libc::in6_addr { s6_addr: v6.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            write_message(control, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info)
        }
    }
}

fn write_message<T>(control: &mut Control, (level, kind): (c_int, c_int), data: T) -> usize {
    // SAFETY: no memory is touched; the functions compute sizes.
    let (space, length) = unsafe { (libc::CMSG_SPACE(size_of::<T>() as u32), libc::CMSG_LEN(size_of::<T>() as u32)) };
    let head = libc::cmsghdr { cmsg_len: length as _, cmsg_level: level, cmsg_type: kind };
    assert!(space as usize <= size_of::<Control>(), "the two kinds of messages there are fit");
    let message: *mut libc::cmsghdr = control.0.as_mut_ptr().cast();
    // SAFETY: `control` is aligned for a header and has room for it and the data behind it.
    unsafe {
        message.write(head);
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(data);
    }
    space as usize
}
