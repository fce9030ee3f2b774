#include "recorder/tracer/runtime/log.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>

#include "recorder/tracer/runtime/call.h"

namespace clew::tracer {
namespace {

void Empty(ThreadState& thread) {
  thread.log_index =
      -static_cast<int64_t>(thread.log_records) * int64_t{sizeof(LogRecord)};
}

// Waits for the recorder to have read a batch.
void WaitForRoom(ThreadSlot& slot) {
  for (;;) {
    const uint32_t read = slot.batches_read.load(std::memory_order_acquire);
    if (slot.batches_written.load(std::memory_order_relaxed) - read <
        kBatches) {
      return;
    }
    Call(SYS_futex, AddrOf(&slot.batches_read), FUTEX_WAIT, read);
  }
}

}  // namespace

void BeginLog(ThreadState& thread, uint32_t fragment) {
  Empty(thread);
  if (fragment != 0) {
    Log(thread, fragment);
    if (thread.log_index == 0) {
      Flush(thread);
    }
  }
}

void Log(ThreadState& thread, LogRecord record) {
  constexpr int64_t kBytes = sizeof(LogRecord);
  SlotOf(thread).log.end()[thread.log_index / kBytes] = record;
  thread.log_index += kBytes;
}

void Flush(ThreadState& thread, BatchEnd end, uint64_t addr) {
  const Runtime& runtime = RuntimeOf(thread);
  ThreadSlot& slot = SlotOf(thread);
  const uint64_t capacity = thread.log_records;
  const uint64_t left =
      static_cast<uint64_t>(-thread.log_index) / sizeof(LogRecord);
  if (left == capacity && end == BatchEnd::kNothing) {
    return;
  }
  WaitForRoom(slot);
  const uint32_t number = slot.batches_written.load(std::memory_order_relaxed);
  Batch& batch = slot.batches[number % kBatches];
  batch.tsc = runtime.shared->log_registers != 0 ? 0 : Tsc();
  batch.record_count = static_cast<uint32_t>(capacity - left);
  batch.end = end;
  batch.addr = addr;
  batch.version = static_cast<uint32_t>(thread.version);
  std::copy_n(slot.log.end() - capacity, batch.record_count,
              batch.records.begin());
  if (runtime.shared->log_registers != 0) {
    auto* const registers =
        reinterpret_cast<uint64_t*>(&batch.records[kRegistersAt]);
    *std::copy_n(thread.gpr.begin(), thread.gpr.size(), registers) =
        thread.rflags;
  }
  slot.batches_written.store(number + 1, std::memory_order_release);
  Empty(thread);
}

uint64_t AddrOfLastRecord(ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  const LogRecord last = SlotOf(thread).log.back();
  return (last & kTakenEdge) != 0
             ? runtime.edge((last & ~kTakenEdge) % kEdgesMax).target
             : runtime.fragment(last % kFragmentsMax).start;
}

}  // namespace clew::tracer
