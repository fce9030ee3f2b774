#include "recorder/tracer/runtime/park.h"

#include "recorder/tracer/runtime/versions.h"

namespace clew::tracer {

void Park(ThreadState& thread, Parked why, uint64_t addr) {
  LeaveProgram(thread);
  thread.signals.boundary = addr;
  thread.tell.parked = why;
  asm volatile("int3" ::: "memory");
  thread.tell.parked = Parked::kNot;
}

void ParkIfAsked(ThreadState& thread, uint64_t addr) {
  if (IsToPark(thread)) {
    Park(thread, Parked::kAsked, addr);
  }
}

}  // namespace clew::tracer
