#ifndef CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LOG_H_

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Lets a thread's log begin, with the fragment that it enters first.
void BeginLog(ThreadState& thread, uint32_t fragment);

// Hands the records of the log on, and begins it anew. Waits for the recorder
// to have read enough.
void Flush(ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LOG_H_
