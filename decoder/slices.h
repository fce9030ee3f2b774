#ifndef CLEW_DECODER_SLICES_H_
#define CLEW_DECODER_SLICES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/stream.h"
#include "common/units.h"

namespace clew::decoder {

// A context switch, or the beginning of a thread's trace (which counts as one
// where the core was taken for idle).
struct SwitchEvent {
  enum class Kind : uint8_t { kIn, kOut, kStart };
  Kind kind = Kind::kIn;
  CoreId core;
  Tid thread;  // 0: idle; negative: gone already
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
  void Add(const SwitchEvent& event);
  // A core without any switch event has one slice, of this thread.
  void SetOnlyThread(CoreId core, Tid thread);
  std::vector<Slice> Build();

 private:
  std::map<CoreId, std::vector<SwitchEvent>> events_;
  std::map<CoreId, Tid> only_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_SLICES_H_
