#include "recorder/qemu/request_table.h"

#include <linux/fs.h>
#include <linux/if_tun.h>
#include <linux/prctl.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include <algorithm>
#include <span>

namespace clew::recorder {
namespace {

struct RequestRule {
  uint64_t request = 0;
  uint64_t bytes = 0;
};

constexpr uint64_t kInt = sizeof(int);
constexpr uint64_t kTermiosBytes = 36;  // the kernel's, asm/termbits.h
constexpr uint64_t kTermioBytes = 18;

// Requests whose number does not say how much is written: those of terminals
// (asm-generic/ioctls.h, linux/serial.h), files and block devices (linux/fs.h),
// and sockets (linux/sockios.h), which take a struct ifreq and give it back.
// TUNSETIFF says an int, and takes and gives a struct ifreq.
constexpr RequestRule kIoctls[] = {
    {TCGETS, kTermiosBytes},
    {TCSETS, 0},
    {TCSETSW, 0},
    {TCSETSF, 0},
    {TCGETA, kTermioBytes},
    {TCSETA, 0},
    {TCSETAW, 0},
    {TCSETAF, 0},
    {TCSBRK, 0},
    {TCXONC, 0},
    {TCFLSH, 0},
    {TIOCEXCL, 0},
    {TIOCNXCL, 0},
    {TIOCSCTTY, 0},
    {TIOCGPGRP, kInt},
    {TIOCSPGRP, 0},
    {TIOCOUTQ, kInt},
    {TIOCGWINSZ, sizeof(winsize)},
    {TIOCSWINSZ, 0},
    {TIOCMGET, kInt},
    {FIONREAD, kInt},
    {TIOCNOTTY, 0},
    {TIOCGSID, kInt},
    {TIOCSTI, 0},
    {TIOCMBIS, 0},
    {TIOCMBIC, 0},
    {TIOCMSET, 0},
    {TIOCMIWAIT, 0},
    {TIOCGSOFTCAR, kInt},
    {TIOCSSOFTCAR, 0},
    {TIOCGSERIAL, sizeof(serial_struct)},
    {TIOCSSERIAL, 0},
    {TIOCCONS, 0},
    {TIOCPKT, 0},
    {TIOCSETD, 0},
    {TIOCGETD, kInt},
    {TCSBRKP, 0},
    {TIOCSBRK, 0},
    {TIOCCBRK, 0},
    {TIOCVHANGUP, 0},
    {TIOCSERGETLSR, kInt},
    {TIOCGICOUNT, sizeof(serial_icounter_struct)},
    {FIONCLEX, 0},
    {FIOCLEX, 0},
    {FIOASYNC, 0},
    {FIONBIO, 0},
    {FIOQSIZE, sizeof(int64_t)},
    {FIOSETOWN, 0},
    {SIOCSPGRP, 0},
    {FIOGETOWN, kInt},
    {SIOCGPGRP, kInt},
    {SIOCATMARK, kInt},
    {SIOCGSTAMP_OLD, sizeof(timeval)},
    {SIOCGSTAMPNS_OLD, sizeof(timespec)},
    {SIOCADDRT, 0},
    {SIOCDELRT, 0},
    {SIOCGIFNAME, sizeof(ifreq)},
    {SIOCGIFFLAGS, sizeof(ifreq)},
    {SIOCGIFADDR, sizeof(ifreq)},
    {SIOCGIFDSTADDR, sizeof(ifreq)},
    {SIOCGIFBRDADDR, sizeof(ifreq)},
    {SIOCGIFNETMASK, sizeof(ifreq)},
    {SIOCGIFMETRIC, sizeof(ifreq)},
    {SIOCGIFMTU, sizeof(ifreq)},
    {SIOCGIFHWADDR, sizeof(ifreq)},
    {SIOCGIFINDEX, sizeof(ifreq)},
    {SIOCGIFTXQLEN, sizeof(ifreq)},
    {SIOCGIFMAP, sizeof(ifreq)},
    {SIOCGIFMEM, sizeof(ifreq)},
    {SIOCGIFENCAP, sizeof(ifreq)},
    {SIOCGIFSLAVE, sizeof(ifreq)},
    {SIOCGIFPFLAGS, sizeof(ifreq)},
    {SIOCSIFFLAGS, 0},
    {SIOCSIFADDR, 0},
    {SIOCSIFDSTADDR, 0},
    {SIOCSIFBRDADDR, 0},
    {SIOCSIFNETMASK, 0},
    {SIOCSIFMETRIC, 0},
    {SIOCSIFMTU, 0},
    {SIOCSIFHWADDR, 0},
    {SIOCSIFNAME, 0},
    {SIOCSIFTXQLEN, 0},
    {SIOCSIFPFLAGS, 0},
    {SIOCADDMULTI, 0},
    {SIOCDELMULTI, 0},
    {SIOCGARP, sizeof(arpreq)},
    {SIOCSARP, 0},
    {SIOCDARP, 0},
    {FIBMAP, kInt},
    {FIGETBSZ, kInt},
    {BLKROSET, 0},
    {BLKROGET, kInt},
    {BLKRRPART, 0},
    {BLKGETSIZE, sizeof(long)},
    {BLKFLSBUF, 0},
    {BLKRASET, 0},
    {BLKRAGET, sizeof(long)},
    {BLKFRASET, 0},
    {BLKFRAGET, sizeof(long)},
    {BLKSECTGET, sizeof(uint16_t)},
    {BLKSSZGET, kInt},
    {BLKDISCARD, 0},
    {BLKSECDISCARD, 0},
    {BLKZEROOUT, 0},
    {BLKIOMIN, kInt},
    {BLKIOOPT, kInt},
    {BLKALIGNOFF, kInt},
    {BLKPBSZGET, kInt},
    {BLKDISCARDZEROES, kInt},
    {BLKROTATIONAL, sizeof(uint16_t)},
    {TUNSETIFF, sizeof(ifreq)},
};

// linux/prctl.h and prctl(2).
constexpr RequestRule kPrctls[] = {
    {PR_SET_PDEATHSIG, 0},
    {PR_GET_PDEATHSIG, kInt},
    {PR_GET_DUMPABLE, 0},
    {PR_SET_DUMPABLE, 0},
    {PR_GET_KEEPCAPS, 0},
    {PR_SET_KEEPCAPS, 0},
    {PR_GET_TIMING, 0},
    {PR_SET_TIMING, 0},
    {PR_SET_NAME, 0},
    {PR_GET_NAME, 16},
    {PR_CAPBSET_READ, 0},
    {PR_CAPBSET_DROP, 0},
    {PR_GET_TSC, kInt},
    {PR_GET_SECUREBITS, 0},
    {PR_SET_SECUREBITS, 0},
    {PR_SET_TIMERSLACK, 0},
    {PR_GET_TIMERSLACK, 0},
    {PR_MCE_KILL, 0},
    {PR_MCE_KILL_GET, 0},
    {PR_SET_CHILD_SUBREAPER, 0},
    {PR_GET_CHILD_SUBREAPER, kInt},
    {PR_SET_NO_NEW_PRIVS, 0},
    {PR_GET_NO_NEW_PRIVS, 0},
    {PR_GET_TID_ADDRESS, sizeof(uint64_t)},
    {PR_SET_THP_DISABLE, 0},
    {PR_GET_THP_DISABLE, 0},
    {PR_CAP_AMBIENT, 0},
    {PR_GET_SPECULATION_CTRL, 0},
    {PR_SET_SPECULATION_CTRL, 0},
    {PR_SET_IO_FLUSHER, 0},
    {PR_GET_IO_FLUSHER, 0},
    {PR_SET_VMA, 0},
    {PR_SET_PTRACER, 0},
};

std::optional<uint64_t> Find(std::span<const RequestRule> rules,
                             uint64_t request) {
  const auto rule = std::ranges::find(rules, request, &RequestRule::request);
  return rule == rules.end() ? std::nullopt : std::optional(rule->bytes);
}

}  // namespace

// Requests that are made by _IOR, _IOW and _IOWR say their size.
std::optional<uint64_t> IoctlBytes(uint32_t request) {
  constexpr uint32_t kReadDirection = 2;
  const auto known = Find(kIoctls, request);
  if (known || _IOC_TYPE(request) == 0 || _IOC_SIZE(request) == 0) {
    return known;
  }
  return (_IOC_DIR(request) & kReadDirection) != 0 ? _IOC_SIZE(request) : 0;
}

std::optional<uint64_t> PrctlBytes(uint64_t option) {
  return Find(kPrctls, option);
}

}  // namespace clew::recorder
