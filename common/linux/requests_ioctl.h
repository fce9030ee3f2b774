#ifndef CLEW_COMMON_LINUX_REQUESTS_IOCTL_H_
#define CLEW_COMMON_LINUX_REQUESTS_IOCTL_H_

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsverity.h>
#include <linux/if_tun.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>

#include "common/linux/request_row.h"

// Rows of the table of requests: ioctl, where the number does not say how much
// is written (ioctl_size.h). Sources: asm-generic/ioctls.h and linux/serial.h
// for terminals, linux/sockios.h for sockets, linux/fs.h for files and block
// devices.

namespace clew::request_rows {

inline constexpr uint16_t kArpreq = sizeof(arpreq);
inline constexpr uint16_t kIfreq = sizeof(ifreq);
inline constexpr uint16_t kShort = sizeof(short);
inline constexpr uint16_t kTermio = 18;   // struct termio, asm/termios.h
inline constexpr uint16_t kTermios = 36;  // the kernel's, asm/termbits.h

inline constexpr RequestRow kIoctlRequests[] = {
    // Terminals, and what every descriptor takes.
    CLEW_REQUEST(TCGETS, "iil", .bytes = kTermios),
    CLEW_REQUEST(TCSETS, "iil"),
    CLEW_REQUEST(TCSETSW, "iil"),
    CLEW_REQUEST(TCSETSF, "iil"),
    CLEW_REQUEST(TCGETA, "iil", .bytes = kTermio),
    CLEW_REQUEST(TCSETA, "iil"),
    CLEW_REQUEST(TCSETAW, "iil"),
    CLEW_REQUEST(TCSETAF, "iil"),
    CLEW_REQUEST(TCSBRK, "iii"),
    CLEW_REQUEST(TCXONC, "iii"),
    CLEW_REQUEST(TCFLSH, "iii"),
    CLEW_REQUEST(TIOCEXCL, "ii"),
    CLEW_REQUEST(TIOCNXCL, "ii"),
    CLEW_REQUEST(TIOCSCTTY, "iii"),
    CLEW_REQUEST(TIOCGPGRP, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCSPGRP, "iil"),
    CLEW_REQUEST(TIOCOUTQ, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCSTI, "iil"),
    CLEW_REQUEST(TIOCGWINSZ, "iil", .bytes = sizeof(winsize)),
    CLEW_REQUEST(TIOCSWINSZ, "iil"),
    CLEW_REQUEST(TIOCMGET, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCMBIS, "iil"),
    CLEW_REQUEST(TIOCMBIC, "iil"),
    CLEW_REQUEST(TIOCMSET, "iil"),
    CLEW_REQUEST(TIOCGSOFTCAR, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCSSOFTCAR, "iil"),
    CLEW_REQUEST(FIONREAD, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCCONS, "ii"),
    CLEW_REQUEST(TIOCGSERIAL, "iil", .bytes = sizeof(serial_struct)),
    CLEW_REQUEST(TIOCSSERIAL, "iil"),
    CLEW_REQUEST(TIOCPKT, "iil"),
    CLEW_REQUEST(FIONBIO, "iil"),
    CLEW_REQUEST(TIOCNOTTY, "ii"),
    CLEW_REQUEST(TIOCSETD, "iil"),
    CLEW_REQUEST(TIOCGETD, "iil", .bytes = kInt),
    CLEW_REQUEST(TCSBRKP, "iii"),
    CLEW_REQUEST(TIOCSBRK, "ii"),
    CLEW_REQUEST(TIOCCBRK, "ii"),
    CLEW_REQUEST(TIOCGSID, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCVHANGUP, "ii"),
    CLEW_REQUEST(TIOCGPTPEER, "iii"),
    CLEW_REQUEST(FIONCLEX, "ii"),
    CLEW_REQUEST(FIOCLEX, "ii"),
    CLEW_REQUEST(FIOASYNC, "iil"),
    CLEW_REQUEST(TIOCSERGETLSR, "iil", .bytes = kInt),
    CLEW_REQUEST(TIOCMIWAIT, "iil"),
    CLEW_REQUEST(TIOCGICOUNT, "iil", .bytes = sizeof(serial_icounter_struct)),
    CLEW_REQUEST(FIOQSIZE, "iil", .bytes = sizeof(loff_t)),

    // Sockets and network devices: what asks takes a struct ifreq and gives it
    // back.
    CLEW_REQUEST(FIOSETOWN, "iil"),
    CLEW_REQUEST(SIOCSPGRP, "iil"),
    CLEW_REQUEST(FIOGETOWN, "iil", .bytes = kInt),
    CLEW_REQUEST(SIOCGPGRP, "iil", .bytes = kInt),
    CLEW_REQUEST(SIOCATMARK, "iil", .bytes = kInt),
    CLEW_REQUEST(SIOCGSTAMP_OLD, "iil", .bytes = sizeof(timeval)),
    CLEW_REQUEST(SIOCGSTAMPNS_OLD, "iil", .bytes = sizeof(timespec)),
    CLEW_REQUEST(SIOCADDRT, "iil"),
    CLEW_REQUEST(SIOCDELRT, "iil"),
    CLEW_REQUEST(SIOCGIFNAME, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCGIFCONF, "iil", .bytes = sizeof(ifconf),
                 .extent = RequestExtent::kInterfaceList),
    CLEW_REQUEST(SIOCGIFFLAGS, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFFLAGS, "iil"),
    CLEW_REQUEST(SIOCGIFADDR, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFADDR, "iil"),
    CLEW_REQUEST(SIOCGIFDSTADDR, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFDSTADDR, "iil"),
    CLEW_REQUEST(SIOCGIFBRDADDR, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFBRDADDR, "iil"),
    CLEW_REQUEST(SIOCGIFNETMASK, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFNETMASK, "iil"),
    CLEW_REQUEST(SIOCGIFMETRIC, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFMETRIC, "iil"),
    CLEW_REQUEST(SIOCGIFMEM, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCGIFMTU, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFMTU, "iil"),
    CLEW_REQUEST(SIOCSIFNAME, "iil"),
    CLEW_REQUEST(SIOCSIFHWADDR, "iil"),
    CLEW_REQUEST(SIOCGIFENCAP, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCGIFHWADDR, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCGIFSLAVE, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCADDMULTI, "iil"),
    CLEW_REQUEST(SIOCDELMULTI, "iil"),
    CLEW_REQUEST(SIOCGIFINDEX, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFPFLAGS, "iil"),
    CLEW_REQUEST(SIOCGIFPFLAGS, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCGIFTXQLEN, "iil", .bytes = kIfreq),
    CLEW_REQUEST(SIOCSIFTXQLEN, "iil"),
    CLEW_REQUEST(SIOCDARP, "iil"),
    CLEW_REQUEST(SIOCGARP, "iil", .bytes = kArpreq),
    CLEW_REQUEST(SIOCSARP, "iil"),
    CLEW_REQUEST(SIOCGIFMAP, "iil", .bytes = kIfreq),
    // The numbers of these say an int; the kernel takes a struct ifreq and
    // gives it back (drivers/net/tun.c).
    CLEW_REQUEST(TUNSETIFF, "iil", .bytes = kIfreq),
    CLEW_REQUEST(TUNGETIFF, "iil", .bytes = kIfreq),

    // An array follows the structure that their numbers tell of.
    CLEW_REQUEST(FS_IOC_FIEMAP, "iil", .bytes = sizeof(fiemap),
                 .extent = RequestExtent::kUnknown),
    CLEW_REQUEST(FIDEDUPERANGE, "iil", .bytes = sizeof(file_dedupe_range),
                 .extent = RequestExtent::kUnknown),
    CLEW_REQUEST(FS_IOC_MEASURE_VERITY, "iil", .bytes = sizeof(fsverity_digest),
                 .extent = RequestExtent::kUnknown),

    // Files and block devices. The numbers of the first three say a long; the
    // kernel writes an int.
    CLEW_REQUEST(FS_IOC_GETFLAGS, "iil", .bytes = kInt),
    CLEW_REQUEST(FS_IOC_GETVERSION, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKBSZGET, "iil", .bytes = kInt),
    CLEW_REQUEST(FIBMAP, "iil", .bytes = kInt),
    CLEW_REQUEST(FIGETBSZ, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKROSET, "iil"),
    CLEW_REQUEST(BLKROGET, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKRRPART, "ii"),
    CLEW_REQUEST(BLKGETSIZE, "iil", .bytes = kLong),
    CLEW_REQUEST(BLKFLSBUF, "ii"),
    CLEW_REQUEST(BLKRASET, "iil"),
    CLEW_REQUEST(BLKRAGET, "iil", .bytes = kLong),
    CLEW_REQUEST(BLKFRASET, "iil"),
    CLEW_REQUEST(BLKFRAGET, "iil", .bytes = kLong),
    CLEW_REQUEST(BLKSECTGET, "iil", .bytes = kShort),
    CLEW_REQUEST(BLKSSZGET, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKDISCARD, "iil"),
    CLEW_REQUEST(BLKIOMIN, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKIOOPT, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKALIGNOFF, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKPBSZGET, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKDISCARDZEROES, "iil", .bytes = kInt),
    CLEW_REQUEST(BLKSECDISCARD, "iil"),
    CLEW_REQUEST(BLKROTATIONAL, "iil", .bytes = kShort),
    CLEW_REQUEST(BLKZEROOUT, "iil"),
};

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUESTS_IOCTL_H_
