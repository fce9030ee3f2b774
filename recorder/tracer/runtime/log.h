#ifndef CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LOG_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// There is something to do for the recorder soon: it sleeps for as long as
// there is nothing, a millisecond at a time. To read a batch is not urgent.
void WakeRecorder(SharedHeader& shared);

// The time that a log has; 0 where it has none (SharedHeader::log_registers).
uint64_t LogTime(const Runtime& runtime);

// Whether the recorder reads the thread's log: of a process that the recorded
// one made, it does not.
bool IsRead(ThreadState& thread);

// Lets a thread's log begin, with the fragment that it enters first; 0:
// without.
void BeginLog(ThreadState& thread, uint32_t fragment);

// Writes a record. REQUIRES: the log is not full.
void Log(ThreadState& thread, LogRecord record);

// Hands the records of the log on, if there are any or it ends there, and
// begins it anew. Waits for the recorder to have read enough.
void Flush(ThreadState& thread, BatchEnd end = BatchEnd::kNothing,
           uint64_t addr = 0);

// Hands on that this code, kBatchBytes at most, ran; the log is to begin anew.
// REQUIRES: it is empty.
void FlushCode(ThreadState& thread, uint64_t addr,
               std::span<const uint8_t> code);

// What a thread tells (ToldHead), into the next batches of its queue, before
// what is in the log. The last one is handed on at the end. REQUIRES: nothing
// else is until then.
class ToldWriter {
 public:
  explicit ToldWriter(ThreadState& thread) : thread_(thread) {}
  ~ToldWriter() { HandOn(); }
  ToldWriter(const ToldWriter&) = delete;
  ToldWriter& operator=(const ToldWriter&) = delete;

  // Returns what is left of the batch, `bytes_min` at least. Waits for the
  // recorder to have read enough. REQUIRES: bytes_min <= kBatchBytes.
  std::span<uint8_t> Room(size_t bytes_min);
  // So many bytes of that are told.
  void Use(size_t bytes) { used_ += bytes; }
  // Tells these bytes, in as many batches as they need.
  void Write(std::span<const uint8_t> bytes);

 private:
  void HandOn();

  ThreadState& thread_;
  Batch* batch_ = nullptr;
  size_t used_ = 0;
};

// Whether so many batches can be handed on without a wait.
bool HasRoom(ThreadState& thread, uint32_t batches);

// Where the thread is when its log is full: where its last record leads.
uint64_t AddrOfLastRecord(ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
