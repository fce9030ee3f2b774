#include "recorder/tracer/runtime/park.h"

#include <sys/syscall.h>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/signal_mask.h"
#include "recorder/tracer/runtime/versions.h"

namespace clew::tracer {
namespace {

// A process that it makes keeps the program's memory, and is never to run: it
// does where the recorder, which holds it, is killed, and must not touch what
// it shares with the program, where there may be another order by then.
uint64_t MakeOrdered(const OrderedCall& order) {
  const OrderedCall call = order;
  const uint64_t result =
      Call(call.number, call.args[0], call.args[1], call.args[2], call.args[3],
           call.args[4], call.args[5]);
  while (call.number == SYS_clone && result == 0) {
    Call(SYS_exit_group, 0);
  }
  return result;
}

bool FollowOrders(ThreadSlot& slot, const SharedHeader& shared) {
  for (;;) {
    const ParkOrder order = slot.order.load(std::memory_order_acquire);
    if (order == ParkOrder::kGoOn || !HasReader(shared)) {
      return order == ParkOrder::kGoOn;
    }
    if (order == ParkOrder::kMakeCall) {
      slot.call.result = MakeOrdered(slot.call);
      slot.order.store(ParkOrder::kWait, std::memory_order_release);
    }
    WaitAWhile(AddrOf(&slot.order), static_cast<uint32_t>(ParkOrder::kWait));
  }
}

}  // namespace

bool Park(ThreadState& thread, Parked why, uint64_t addr) {
  if (thread.signals.is_blocking == 0) {
    // None is to find it there, and be handled at the recorder's convenience.
    const SignalsBlocked blocked(thread);
    return Park(thread, why, addr);
  }
  ThreadSlot& slot = SlotOf(thread);
  LeaveProgram(thread);
  thread.signals.boundary = addr;
  thread.tell.parked = why;
  SharedHeader& shared = *RuntimeOf(thread).shared;
  slot.order.store(ParkOrder::kWait, std::memory_order_release);
  WakeRecorder(shared);
  const bool goes_on = FollowOrders(slot, shared);
  slot.order.store(ParkOrder::kNotParked, std::memory_order_release);
  thread.tell.parked = Parked::kNot;
  return goes_on;
}

void ParkIfAsked(ThreadState& thread, uint64_t addr) {
  if (IsToPark(thread)) {
    Park(thread, Parked::kAsked, addr);
  }
}

}  // namespace clew::tracer
