#ifndef CLEW_RECORDER_TRACER_RUNTIME_THREADS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_THREADS_H_

#include <array>
#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Maps the memory of a thread that has a slot, and gives it a state.
// REQUIRES: the slot was taken.
ThreadState& BeginThread(Runtime& runtime, uint32_t slot);

// Calls `use` with the state of each thread.
template <class Use>
void ForEachThread(Runtime& runtime, Use use) {
  const uint32_t count = runtime.places_used.load();
  for (uint32_t number = 0; number < count; ++number) {
    const Place& place = runtime.thread_places[number];
    if (place.is_taken.load() != 0 && place.is_mapped.load() != 0) {
      use(StateAt(runtime, number));
    }
  }
}

// Lets a thread begin, and its log: at the program's address in `resume`.
void BeginProgram(ThreadState& thread);
// Lets its log begin anew, and the thread go on, at an address of the program.
void BeginAt(ThreadState& thread, uint64_t addr);

// Whether a system call makes a thread or process.
bool IsClone(uint64_t number);

// Makes that call for the program: what it makes begins in the runtime, and
// goes on where the program does. Returns what the kernel returns; in a new
// process, 0; kNotMade (signals.h) if a signal came before.
uint64_t Clone(ThreadState& thread, uint64_t number,
               const std::array<uint64_t, 6>& arguments);

// Ends the calling thread by the call `number`, exit(2), or exit_group(2) of a
// process that has another one's memory; the slot may be another thread's at
// once. Returns if a signal came before.
void EndThread(ThreadState& thread, uint64_t number, uint64_t status);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_THREADS_H_
