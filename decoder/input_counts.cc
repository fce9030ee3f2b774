#include "decoder/input_counts.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "bundle/input_log.h"
#include "common/inputs.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::InputLog;

// Numbers of a file may be anything.
void AddTo(uint64_t& sum, uint64_t more) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  sum = more > kMax - sum ? kMax : sum + more;
}

void AddUnknown(const UnknownInput& unknown, InputCounts& counts) {
  AddTo(counts.unknown_in_log, unknown.count);
  const bool has_room = counts.causes.size() < InputCounts::kCausesMax;
  const bool known = counts.causes.contains(unknown.cause);
  AddTo(counts.causes[known || has_room ? unknown.cause
                                        : InputCounts::kOtherCauses],
        unknown.count);
}

void Add(const InputRecord& record, InputCounts& counts) {
  if (std::holds_alternative<SyscallInput>(record)) {
    ++counts.calls;
  } else if (std::holds_alternative<SignalInput>(record)) {
    ++counts.signals;
  } else if (std::holds_alternative<InsnInput>(record)) {
    ++counts.instructions;
  } else if (const auto* unknown = std::get_if<UnknownInput>(&record)) {
    AddUnknown(*unknown, counts);
  }
}

}  // namespace

Result<InputCounts> CountInputs(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(log, InputLog::Open(path));
  InputCounts counts;
  for (const Tid thread : log->threads()) {
    ++counts.threads;
    while (true) {
      CLEW_ASSIGN_OR_RETURN(record, log->Next(thread));
      if (!record) {
        break;
      }
      Add(*record, counts);
    }
  }
  counts.unknown = counts.unknown_in_log;
  return counts;
}

Result<InputCounts> CountInputs(const Bundle& bundle) {
  CLEW_ASSIGN_OR_RETURN(counts, CountInputs(bundle.path() + "/inputs.pb"));
  counts.unknown = std::max(counts.unknown, bundle.manifest().inputs_unknown);
  return std::move(counts);
}

}  // namespace clew::decoder
