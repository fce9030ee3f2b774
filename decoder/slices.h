#ifndef CLEW_DECODER_SLICES_H_
#define CLEW_DECODER_SLICES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/stream.h"
#include "common/units.h"

namespace clew::decoder {

// A context switch, the beginning of a thread's trace (which counts as one
// where the core was taken for idle), or an execve, behind which the thread's
// time is another slice: other code runs there.
struct SliceBoundary {
  enum class Kind : uint8_t { kIn, kOut, kStart, kExec };
  Kind kind = Kind::kIn;
  CoreId core;
  Tid thread;           // 0: idle; negative: gone already
  int32_t process = 0;  // at most 0: not known
  TscInterval time;
};

// Cuts each core's time into slices by its switch events, which come in the
// order of the file, and within a core are sorted here by time. Missing events
// are made up for: a thread that goes out without having come in was on the
// core since the event before. The idle task has no slice.
//
// The result is ordered by core, then time; ids are indices.
class SliceBuilder {
 public:
  void Add(const SliceBoundary& event);
  // A core without any switch event has one slice, of this thread; so does a
  // thread's own stream.
  void SetOnlyThread(CoreId core, Tid thread);
  std::vector<Slice> Build();

 private:
  std::map<CoreId, std::vector<SliceBoundary>> events_;
  std::map<CoreId, Tid> only_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_SLICES_H_
