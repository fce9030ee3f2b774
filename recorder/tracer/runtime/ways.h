#ifndef CLEW_RECORDER_TRACER_RUNTIME_WAYS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_WAYS_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// What leads from fragment to fragment in a cache: records, and jumps that are
// linked.

namespace clew::tracer {

// The cache for code at `addr`: the nearer one.
Arena& ArenaFor(Runtime& runtime, uint64_t addr);

// Takes `count` of a table in the shared memory, and returns the first one.
// Ends the program if there are not so many.
uint32_t Take(Runtime& runtime, std::atomic<uint32_t>& used, uint32_t count,
              uint32_t max);

// Returns its number.
uint32_t AddEdge(Runtime& runtime, const Edge& edge);

// Writes a record; RCX is free. Returns where it goes on: there a call of
// GoOnWhenFull belongs.
uint8_t* WriteRecord(Code& code, LogRecord record);
// What the runtime does when the log is full, and on to `go_on`.
void GoOnWhenFull(Arena& arena, uint8_t* go_on);

// A jump that SetJump changes by one store, and that enters the runtime until
// then: its displacement does not cross 8 bytes; or its target is a number,
// where the other cache is out of reach.
void WriteJump(Arena& arena, uint32_t edge, bool is_far, Way& way);
// Lets what WriteJump wrote lead to `target`.
void SetJump(uint64_t jump, uint64_t target);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_WAYS_H_
