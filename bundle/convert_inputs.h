#ifndef CLEW_BUNDLE_CONVERT_INPUTS_H_
#define CLEW_BUNDLE_CONVERT_INPUTS_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "proto/bundle.pb.h"

// Protobuf messages to plain values and back. Every field is checked against
// its range in proto/bundle.proto; `where` begins each message.

namespace clew::bundle {

[[nodiscard]] Result<StartState> ToStart(const pb::Start& from,
                                         const std::string& where);
[[nodiscard]] Result<InputRecord> ToInput(const pb::Input& from,
                                          const std::string& where);
[[nodiscard]] Result<Schedule> ToSchedule(const pb::Schedule& from,
                                          const std::string& where);
pb::Schedule FromSchedule(const Schedule& from);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CONVERT_INPUTS_H_
