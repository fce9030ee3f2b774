// Goal: independent sources of traces tell the same story: the instructions of
// a run recorded under QEMU, and by the tracer, are those of the same program
// stepped natively.
// Method: programs without a C library, whose path does not depend on where
// they run, one instruction after another. The oracle is the stepper (ptrace).
#include <gtest/gtest.h>
#include <sched.h>

#include <tuple>
#include <vector>

#include "bundle/bundle.h"
#include "decoder/bundle_trace.h"
#include "decoder/streams.h"
#include "recorder/software/record.h"
#include "recorder/stepper/stepper.h"
#include "tests/decoder/perf_script.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using bundle::Bundle;

using Ips = std::vector<uint64_t>;

// Keeps the address of every instruction that retired.
class IpLog final : public recorder::StepObserver {
 public:
  const Ips& ips() const { return ips_; }

  void OnThread(Tid, Tid) override {}
  void OnSwitchIn(Tid) override {}
  void OnInsn(const recorder::SteppedInsn& insn) override {
    ips_.push_back(insn.ip.as_int());
  }
  void OnFarTransfer(const recorder::SteppedInsn& insn) override {
    ips_.push_back(insn.ip.as_int());
  }
  void OnInterrupt(TraceeAddr) override {}
  void OnKernelReturn(TraceeAddr) override {}
  void OnSwitchOut(bool) override {}
  void OnExit(Tid) override {}
  void OnMaps(const std::string&) override {}

 private:
  Ips ips_;
};

Result<Ips> Stepped(const std::string& program) {
  IpLog log;
  CLEW_ASSIGN_OR_RETURN(run, recorder::RunStepped({.command = {program},
                                                   .environment = {},
                                                   .host_cpu = sched_getcpu()},
                                                  log));
  (void)run;  // how it ended is the recorder's test
  return log.ips();
}

Result<Ips> DecodedIps(const std::string& bundle_path) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(bundle_path));
  CLEW_ASSIGN_OR_RETURN(trace, decoder::ReadTrace(bundle));
  CLEW_ASSIGN_OR_RETURN(streams, decoder::TraceStreams::Create(*trace, {}));
  CLEW_ASSIGN_OR_RETURN(ips, decoder::IpsOfStreams(*streams));
  if (ips.size() != 1) {
    return CorruptInput("{} threads, wanted one", ips.size());
  }
  return std::move(ips.begin()->second);
}

using recorder::SoftwareSource;

struct Source {
  SoftwareSource source;
  bool is_free = false;
  const char* name;
};
void PrintTo(const Source& source, std::ostream* out) { *out << source.name; }

using SourcesCase = std::tuple<Source, const char*>;

class SourcesTest : public testing::TestWithParam<SourcesCase> {};

TEST_P(SourcesTest, TellTheSameInstructions) {
  const Scratch scratch;
  const auto& [source, program] = GetParam();
  recorder::RecordOptions options;
  options.source = source.source;
  options.is_free = source.is_free;
  options.command = {Tracee(program)};
  options.output = scratch.Path("b.clew");
  options.plugin_path = Built("bin/clew-qemu-plugin.so");
  const auto recorded = recorder::Record(options);
  ASSERT_TRUE(recorded.has_value()) << recorded.error().message;
  const auto decoded = DecodedIps(options.output);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  const auto stepped = Stepped(options.command[0]);
  ASSERT_TRUE(stepped.has_value()) << stepped.error().message;
  EXPECT_GT(stepped->size(), 300u);
  RecordProperty("instructions", static_cast<int>(stepped->size()));
  ASSERT_EQ(decoded->size(), stepped->size());
  for (size_t i = 0; i < stepped->size(); ++i) {
    ASSERT_EQ((*decoded)[i], (*stepped)[i]) << "instruction " << i;
  }
}

std::string NameOfCase(const testing::TestParamInfo<SourcesCase>& test) {
  const auto& [source, program] = test.param;
  return fmt::format("{}_{}", program, source.name);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, SourcesTest,
    testing::Combine(
        testing::Values(Source{SoftwareSource::kQemu, false, "qemu"},
                        Source{SoftwareSource::kTracer, false, "tracer"},
                        Source{SoftwareSource::kTracer, true, "free"}),
        testing::Values("static_loop", "static_calls", "static_strings")),
    NameOfCase);

}  // namespace
}  // namespace clew::e2e
