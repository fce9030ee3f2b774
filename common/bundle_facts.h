#ifndef CLEW_COMMON_BUNDLE_FACTS_H_
#define CLEW_COMMON_BUNDLE_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What is added to a bundle's manifest after the recording; the specification
// of each field is in proto/bundle.proto.

namespace clew {

// The version of the rules by which a failure gets its signature: see
// decoder/failure_signature.h. Signatures of other rules are other signatures.
inline constexpr int kSignatureRules = 2;

// Numbers are those of proto/bundle.proto, Trigger.Kind.
enum class TriggerKind : uint8_t {
  kUnknown,
  kCore,
  kUnitFailed,
  kHang,
  kRequest,
  kLast = kRequest,
};
// For people: "core dump".
std::string_view ToString(TriggerKind kind);

// Why a daemon saved a bundle.
struct Trigger {
  TriggerKind kind = TriggerKind::kUnknown;
  std::string unit;     // empty: none
  int32_t process = 0;  // 0: none
  int64_t at_ns = 0;    // wall clock since 1970
  uint64_t not_saved = 0;
  bool operator==(const Trigger&) const = default;
};

// A line of the host's journal.
struct JournalLine {
  int64_t at_us = 0;  // wall clock since 1970
  int32_t process = 0;
  std::string unit;
  std::string program;
  uint32_t priority = 6;
  std::string message;
  bool operator==(const JournalLine&) const = default;
};

// What was found of it; `why` says why it is nothing.
struct Journal {
  std::vector<JournalLine> lines;  // oldest first
  std::string why;
  bool operator==(const Journal&) const = default;
};

// Whether a bundle can be expected to be solved.
struct Sufficiency {
  uint32_t score = 0;  // 0..100
  bool decodes = false;
  uint32_t images_missing = 0;
  uint64_t gaps = 0;
  uint64_t gaps_at_failure = 0;
  std::vector<std::string> reasons;  // most important first
  bool operator==(const Sufficiency&) const = default;
};

}  // namespace clew

#endif  // CLEW_COMMON_BUNDLE_FACTS_H_
