#ifndef CLEW_COMMON_STREAM_H_
#define CLEW_COMMON_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/units.h"

namespace clew {

// A maximal stretch of one thread on one core between two context switches, as
// the sideband's switch records tell it, so known before any PT is decoded.
struct Slice {
  uint32_t id = 0;       // index into StreamSource::slices()
  uint32_t on_core = 0;  // position in its core's order of slices
  CoreId core;
  Tid thread;
  int32_t process = 0;  // 0: not known
  TscInterval
      time;  // from switch in to switch out; exact up to the clock slack
};

// Instructions that a thread retired one after another: `insn_count` of them,
// the first at `ip`, each next one sequential or by a direct branch that is
// always taken. Only the last one may be a conditional or indirect branch, a
// return, or a far transfer (SYSCALL).
struct StreamBlock {
  TraceeAddr ip;
  uint32_t insn_count = 0;  // > 0; a REP string instruction counts as one
  uint32_t slice = 0;       // Slice::id
  // Contains the retirement of every instruction of the block. The bounds come
  // from timing packets, never from interpolation.
  TscInterval time;
  // Left user mode after this block without a SYSCALL (preemption, fault,
  // signal). If the thread's next block does not start where this one ended, a
  // signal was delivered in between.
  bool interrupted = false;
  bool is_syscall = false;  // a single SYSCALL (or INT) instruction
  uint8_t code_bits = 64;   // 64, 32 or 16: the mode that it is of
  bool operator==(const StreamBlock&) const = default;
};

enum class GapCause : uint8_t {
  kOverflow,     // OVF packet: the core dropped packets
  kAuxLost,      // AUX bytes missing or truncated
  kCodeMissing,  // no code image for an address
  kBadPacket,    // bytes that are not a packet or contradict the code
  kLostRecords,  // sideband records lost: the thread is not known
};

// A counted, located hole in a trace. Nothing is known of what the thread did
// within `time`.
struct Gap {
  GapCause cause = GapCause::kOverflow;
  CoreId core;
  uint32_t slice = 0;
  TscInterval time;
  uint64_t aux_offset = 0;  // where in the core's PT bytes
  uint64_t bytes = 0;       // 0 where not known
  TraceeAddr ip;            // last address known before, or the missing code
  std::string detail;       // for people
};

using StreamItem = std::variant<StreamBlock, Gap>;

// The per-thread instruction streams of one recording, pulled. Memory is
// bounded by the source's configuration as long as threads are pulled in rough
// time order. Not thread-safe.
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  // Threads with at least one slice, in order of first appearance.
  virtual const std::vector<Tid>& threads() const = 0;
  // All slices, ordered by core, then by time.
  virtual const std::vector<Slice>& slices() const = 0;
  // The next item of `thread` in program order; nullopt after its last one.
  // kLimit: too much is buffered for threads that were not pulled.
  [[nodiscard]] virtual Result<std::optional<StreamItem>> Next(Tid thread) = 0;
  // What Next(thread) is still to return does not begin before. To know it, no
  // slice is decoded but the one that the thread was last found in. The largest
  // number: nothing is left.
  virtual TscTicks NotBefore(Tid /*thread*/) { return TscTicks(0); }
};

}  // namespace clew

#endif  // CLEW_COMMON_STREAM_H_
