#include "solver/model_difference.h"

#include <memory>
#include <variant>

namespace clew::solver {
namespace {

std::optional<uint64_t> LastCall(InputSource& inputs, Tid thread,
                                 uint64_t records) {
  std::optional<uint64_t> last;
  for (uint64_t i = 0; i < records; ++i) {
    const auto next = inputs.Next(thread);
    const auto record = next ? *next : std::nullopt;
    if (!record) {
      break;
    }
    if (const auto* const call = std::get_if<SyscallInput>(&*record)) {
      last = call->number;
    }
  }
  return last;
}

}  // namespace

ModelDifference DifferenceAt(const follower::Recording& recording,
                             const follower::Contradiction& at) {
  ModelDifference difference = {.at = at, .last_call = std::nullopt};
  if (const auto inputs = recording.open_inputs()) {
    difference.last_call = LastCall(**inputs, at.tid, at.inputs);
  }
  return difference;
}

}  // namespace clew::solver
