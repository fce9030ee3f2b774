#include "recorder/bpf/input_event.h"

namespace clew::recorder::bpf {

const char* CauseName(RawCause cause) {
  switch (cause) {
    case kRawRingFull:
      return "the ring was full";
    case kRawBudget:
      return "the budget of bytes a second was spent";
    case kRawTooLong:
      return "more bytes than are recorded of one call";
    case kRawFault:
      return "its memory could not be read";
    case kRawNotInTable:
      return "it is not known what the call writes";
    case kRawBegunBefore:
      return "it was entered before the recording began";
    case kRawCompat:
      return "a 32-bit system call";
    case kRawMappedFile:
      return "the bytes of a mapped file are not recorded";
    case kRawSignalFrame:
      return "the frame of a signal handler is not recorded";
    case kRawInterrupted:
      return "a signal interrupted it, and what came next was lost";
    case kRawExec:
      return "another program was executed";
    case kRawThreadLimit:
      return "more threads than are watched at once";
    case kRawBroken:
      return "events that contradict each other";
    case kRawLogLimit:
      return "the input log reached its limit";
    case kRawCauses:
      break;
  }
  return "an unknown cause";
}

std::string ToString(Causes causes) {
  std::string text;
  for (uint32_t i = 0; i < kRawCauses; ++i) {
    const auto cause = static_cast<RawCause>(i);
    if (causes.Has(cause)) {
      text += text.empty() ? "" : ", ";
      text += CauseName(cause);
    }
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace clew::recorder::bpf
