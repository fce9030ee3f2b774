#include "recorder/tracer/runtime/log.h"

#include <algorithm>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/inputs.h"

namespace clew::tracer {
namespace {

void Empty(ThreadState& thread) {
  thread.log_index =
      -static_cast<int64_t>(thread.log_records) * int64_t{sizeof(LogRecord)};
  thread.leap.records = 0;
}

// Those that are in no batch yet.
std::span<const LogRecord> Pending(ThreadState& thread) {
  const std::span<const LogRecord> log = SlotOf(thread).log;
  if (thread.leap.is_counted != 0) {
    return log.first(thread.leap.records);
  }
  const uint64_t left =
      static_cast<uint64_t>(-thread.log_index) / sizeof(LogRecord);
  return log.last(thread.log_records).first(thread.log_records - left);
}

uint32_t BatchesInQueue(const ThreadSlot& slot) {
  return slot.batches_written.load(std::memory_order_relaxed) -
         slot.batches_read.load(std::memory_order_acquire);
}

// Waits for the recorder to have read a batch, or to read no more: killed, it
// does not say so.
void WaitForRoom(ThreadSlot& slot, SharedHeader& shared) {
  for (;;) {
    const uint32_t read = slot.batches_read.load(std::memory_order_acquire);
    if (BatchesInQueue(slot) < kBatches || !HasReader(shared)) {
      return;
    }
    WakeRecorder(shared);
    WaitAWhile(AddrOf(&slot.batches_read), read);
  }
}

// The next batch of the queue, in the version of the log.
Batch& NextBatch(ThreadState& thread) {
  ThreadSlot& slot = SlotOf(thread);
  WaitForRoom(slot, *RuntimeOf(thread).shared);
  Batch& batch = slot.batches[slot.batches_written.load() % kBatches];
  batch.version = static_cast<uint32_t>(thread.version);
  return batch;
}

void HandOn(ThreadSlot& slot, SharedHeader& shared) {
  slot.batches_written.store(
      slot.batches_written.load(std::memory_order_relaxed) + 1,
      std::memory_order_release);
  if (BatchesInQueue(slot) == kBatches / 2) {
    WakeRecorder(shared);
  }
}

}  // namespace

void WakeRecorder(SharedHeader& shared) {
  if (shared.recorder_sleeps.load() != 0 &&
      shared.recorder_sleeps.exchange(0) != 0) {
    WakeAt(AddrOf(&shared.recorder_sleeps));
  }
}

uint64_t LogTime(const Runtime& runtime) {
  return runtime.shared->log_registers != 0 ? 0 : Tsc();
}

bool IsRead(ThreadState& thread) {
  return RuntimeOf(thread).shared->tells_inputs == 0 || TellsInputs(thread);
}

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
  const std::span<const LogRecord> records = Pending(thread);
  if (records.empty() && end == BatchEnd::kNothing) {
    return;
  }
  if (!IsRead(thread)) {
    Empty(thread);
    return;
  }
  Batch& batch = NextBatch(thread);
  batch.tsc = LogTime(runtime);
  batch.record_count = static_cast<uint32_t>(records.size());
  batch.end = end;
  batch.addr = addr;
  std::ranges::copy(records, batch.records.begin());
  if (runtime.shared->log_registers != 0) {
    auto* const registers =
        reinterpret_cast<uint64_t*>(&batch.records[kRegistersAt]);
    *std::copy_n(thread.gpr.begin(), thread.gpr.size(), registers) =
        thread.rflags;
  }
  HandOn(SlotOf(thread), *runtime.shared);
  Empty(thread);
}

void FlushCode(ThreadState& thread, uint64_t addr,
               std::span<const uint8_t> code) {
  Batch& batch = NextBatch(thread);
  batch.tsc = 0;
  batch.record_count = 0;
  batch.end = BatchEnd::kRan;
  batch.addr = addr;
  batch.code_bytes = static_cast<uint32_t>(code.size());
  std::ranges::copy(code, reinterpret_cast<uint8_t*>(batch.records.data()));
  HandOn(SlotOf(thread), *RuntimeOf(thread).shared);
}

std::span<uint8_t> ToldWriter::Room(size_t bytes_min) {
  if (kBatchBytes - used_ < bytes_min) {
    HandOn();
  }
  if (batch_ == nullptr) {
    batch_ = &NextBatch(thread_);
  }
  return std::span(reinterpret_cast<uint8_t*>(batch_->records.data()),
                   kBatchBytes)
      .subspan(used_);
}

void ToldWriter::Write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::span<uint8_t> room = Room(1);
    const size_t count = std::min(bytes.size(), room.size());
    std::ranges::copy(bytes.first(count), room.begin());
    Use(count);
    bytes = bytes.subspan(count);
  }
}

void ToldWriter::HandOn() {
  if (used_ != 0) {
    batch_->tsc = Tsc();
    batch_->record_count = 0;
    batch_->end = BatchEnd::kTold;
    batch_->addr = 0;
    batch_->code_bytes = static_cast<uint32_t>(used_);
    tracer::HandOn(SlotOf(thread_), *RuntimeOf(thread_).shared);
  }
  batch_ = nullptr;
  used_ = 0;
}

bool HasRoom(ThreadState& thread, uint32_t batches) {
  return BatchesInQueue(SlotOf(thread)) + batches <= kBatches;
}

uint64_t AddrOfLastRecord(ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  const LogRecord last = SlotOf(thread).log.back();
  return (last & kTakenEdge) != 0
             ? runtime.edge((last & ~kTakenEdge) % kEdgesMax).target
             : runtime.fragment(last % kFragmentsMax).start;
}

}  // namespace clew::tracer
