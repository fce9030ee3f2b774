#ifndef CLEW_COMMON_LINUX_DEVIATIONS_H_
#define CLEW_COMMON_LINUX_DEVIATIONS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// What QEMU 7.2 does not carry out as the kernel does, where a program can come
// to fail by it. tests/e2e/deviations_test.cc runs each on both. Not here: what
// programs try and do without, and what the recorder puts right.

namespace clew {

// Reads 8 bytes of the program's memory; nullopt: they cannot be read.
using LoadWord = std::function<std::optional<uint64_t>(uint64_t addr)>;

// Says what differs, "setrlimit(RLIMIT_AS): no limit is set", where a call that
// QEMU returned `result` for is such a case.
std::optional<std::string> DeviationOf(uint64_t number,
                                       const std::array<uint64_t, 6>& args,
                                       int64_t result, const LoadWord& load);

// The same of a call of this name that no kernel seems to have.
std::string DeviationOfAbsentCall(std::string_view name);
// The same of a second list that a thread gives set_robust_list(2); the first
// is the C library's, which does without.
std::string DeviationOfRobustList();
// Of a process that vfork(2) made and that ends.
std::string DeviationOfVforkEnd();
// Of arch_prctl(2) with GS, which the tracer needs for itself; nullopt:
// `number` with `args` is another call.
std::optional<std::string> DeviationOfGsBase(
    uint64_t number, const std::array<uint64_t, 6>& args);
// Of a call that returned `result` and opened a file of procfs that counts what
// the tracer has mapped in the program, too.
std::optional<std::string> DeviationOfMemoryFile(
    uint64_t number, const std::array<uint64_t, 6>& args, int64_t result,
    const LoadWord& load);
// Of LDMXCSR that loads `mxcsr`; nullopt: it masks all exceptions.
std::optional<std::string> DeviationOfMxcsr(uint32_t mxcsr);
// Of FNSTSW.
std::string DeviationOfX87Status();

// The same of a thread that ends, whose set_robust_list(2) gave `list`: it may
// hold a robust mutex, and nobody is told of its owner's death.
std::optional<std::string> DeviationOfThreadEnd(uint64_t list,
                                                const LoadWord& load);

// Why a recording that is to have no deviations is refused that has
// `deviation`.
std::string StrictRefusal(std::string_view deviation);
// What is to be said of a failure of a run with these: "may be the recorder's:
// ...". Empty if there are none.
std::string RecordersDoubt(std::span<const std::string> deviations);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_DEVIATIONS_H_
