#include "common/linux/raw_rules.h"

#include <algorithm>
#include <utility>

#include "common/linux/request_table.h"
#include "common/linux/syscall_table.h"

namespace clew {
namespace {

// raw_rule.h is C, too, and has copies of these.
static_assert(static_cast<int>(Extent::kNone) == kRawNone);
static_assert(static_cast<int>(Extent::kFixed) == kRawFixed);
static_assert(static_cast<int>(Extent::kResult) == kRawResult);
static_assert(static_cast<int>(Extent::kCounted) == kRawCounted);
static_assert(static_cast<int>(Extent::kLengthAt) == kRawLengthAt);
static_assert(static_cast<int>(Extent::kVector) == kRawVector);
static_assert(static_cast<int>(Extent::kFdSet) == kRawFdSet);
static_assert(static_cast<int>(Extent::kOnInterrupt) == kRawOnInterrupt);
static_assert(static_cast<int>(Extent::kPages) == kRawPages);
static_assert(static_cast<int>(Extent::kBits) == kRawBits);
static_assert(static_cast<int>(SyscallOutput::kNone) == kRawNoOutput);
static_assert(static_cast<int>(SyscallOutput::kBuffer) == kRawOutputBuffer);
static_assert(static_cast<int>(SyscallOutput::kVector) == kRawOutputVector);
static_assert(static_cast<int>(SyscallOutput::kMessage) == kRawOutputMessage);
static_assert(static_cast<int>(SpecialEffect::kNone) == kRawNotSpecial);
static_assert(static_cast<int>(SpecialEffect::kRequest) == kRawRequest);
static_assert(static_cast<int>(SpecialEffect::kMmap) == kRawMmap);
static_assert(static_cast<int>(SpecialEffect::kClone) == kRawClone);
static_assert(static_cast<int>(SpecialEffect::kFutex) == kRawFutex);
static_assert(static_cast<int>(SpecialEffect::kReceiveMessage) ==
              kRawReceiveMessage);
static_assert(static_cast<int>(SpecialEffect::kReceiveMessages) ==
              kRawReceiveMessages);
static_assert(static_cast<int>(SpecialEffect::kSendMessages) ==
              kRawSendMessages);
static_assert(static_cast<int>(SpecialEffect::kMessageReceive) ==
              kRawMessageReceive);
static_assert(static_cast<int>(SpecialEffect::kSharedMemory) ==
              kRawSharedMemory);
static_assert(static_cast<int>(SpecialEffect::kOtherMemory) == kRawOtherMemory);

static_assert(static_cast<int>(FileChange::kNone) == kRawNoFileChange);
static_assert(static_cast<int>(FileChange::kAtPosition) == kRawFileAtPosition);
static_assert(static_cast<int>(FileChange::kAtOffset) == kRawFileAtOffset);
static_assert(static_cast<int>(FileChange::kOfThird) == kRawFileOfThird);
static_assert(static_cast<int>(FileChange::kTruncated) == kRawFileChanged);

RawRule FromRow(const SyscallRow& row) {
  RawRule rule = {};
  rule.known = 1;
  rule.output = static_cast<uint8_t>(row.output);
  rule.special = static_cast<uint8_t>(row.special);
  rule.file_change = std::min(static_cast<uint8_t>(row.file_change),
                              static_cast<uint8_t>(kRawFileChanged));
  if (const RequestCall* const requests = FindRequestCall(row.number)) {
    rule.request = requests->argument;
  }
  for (size_t i = 0; i < row.writes.size(); ++i) {
    const Pointee& written = row.writes[i];
    const bool limited =
        written.extent == Extent::kResult && written.bytes == 1;
    rule.writes[i] = {.arg = written.arg,
                      .size = static_cast<uint8_t>(written.extent),
                      .other = written.other,
                      .limit = limited
                                   ? written.other
                                   : static_cast<uint8_t>(CLEW_RAW_NO_LIMIT),
                      .bytes = written.bytes};
  }
  return rule;
}

RawWritten WrittenBy(const RequestCall& call, const RequestRow& row) {
  RawWritten written = {.arg = static_cast<uint8_t>(call.argument + row.behind),
                        .size = kRawFixed,
                        .other = 0,
                        .limit = CLEW_RAW_NO_LIMIT,
                        .bytes = row.bytes};
  if (row.extent == RequestExtent::kResult) {
    written.size = kRawResult;
    written.limit = static_cast<uint8_t>(written.arg + 1);
  } else if (row.extent != RequestExtent::kFixed) {
    written.bytes = CLEW_RAW_REQUEST_UNKNOWN;
  }
  return written;
}

}  // namespace

RawRule RuleFor(uint64_t number) {
  const SyscallRow* const row = FindSyscall(number);
  if (row == nullptr || row->effects == KnownEffects::kNone) {
    return {};
  }
  RawRule rule = FromRow(*row);
  if (row->effects == KnownEffects::kOfFailure) {
    rule.special = kRawFailsOnly;
  }
  return rule;
}

std::vector<RawRequestRule> RequestRules() {
  std::vector<RawRequestRule> rules;
  for (const RequestCall& call : AllRequestCalls()) {
    for (const RequestRow& row : call.rows) {
      rules.push_back(
          {.request = {.number = call.number, .request = row.number},
           .written = WrittenBy(call, row)});
    }
  }
  std::ranges::sort(rules, {}, [](const RawRequestRule& rule) {
    return std::pair(rule.request.number, rule.request.request);
  });
  return rules;
}

}  // namespace clew
