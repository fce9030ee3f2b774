#ifndef CLEW_DECODER_INPUT_COUNTS_H_
#define CLEW_DECODER_INPUT_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "bundle/bundle.h"
#include "common/result.h"

namespace clew::decoder {

// What inputs.pb has, of all threads.
struct InputCounts {
  // Causes that are told apart; the rest are under kOtherCauses.
  static constexpr size_t kCausesMax = 100;
  static constexpr const char* kOtherCauses = "other causes";

  uint64_t threads = 0;
  uint64_t calls = 0;
  uint64_t signals = 0;       // handlers that were entered
  uint64_t instructions = 0;  // RDTSC and the like
  // Calls and signals that are not known, as the records say.
  uint64_t unknown_in_log = 0;
  // The same, with those that the recorder counted and that are in no record
  // (Loss.inputs_unknown): the larger of the two.
  uint64_t unknown = 0;
  // Of unknown_in_log, by cause: strings of the file, for people.
  std::map<std::string, uint64_t> causes;
};

// Reads all of it. Errors as of Bundle::OpenInputs; kCorruptInput also where a
// record breaks the format.
[[nodiscard]] Result<InputCounts> CountInputs(const bundle::Bundle& bundle);
// The same of an inputs.pb, wherever it is, alone.
[[nodiscard]] Result<InputCounts> CountInputs(const std::string& path);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_INPUT_COUNTS_H_
