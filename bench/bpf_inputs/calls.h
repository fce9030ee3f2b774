#ifndef CLEW_BENCH_BPF_INPUTS_CALLS_H_
#define CLEW_BENCH_BPF_INPUTS_CALLS_H_

#include <nlohmann/json.hpp>

#include "common/result.h"

namespace clew::bench {

// What a call takes, by kind of call and by who is watched: prints the table as
// it comes and adds its rows to `rows`. Fails as KernelInputSource::Open does.
[[nodiscard]] Status MeasureCalls(nlohmann::json& rows);

}  // namespace clew::bench

#endif  // CLEW_BENCH_BPF_INPUTS_CALLS_H_
