#ifndef CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LOG_H_

#include <cstdint>
#include <span>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

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

// Whether so many batches can be handed on without a wait.
bool HasRoom(ThreadState& thread, uint32_t batches);

// Where the thread is when its log is full: where its last record leads.
uint64_t AddrOfLastRecord(ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
