// Goal: a recording says nothing false. Every instruction retired within the
// time that decoding gives it, and the order in which everything truly happened
// passes the checker of schedules and ends in the memory of the core dump.
// Method: the recorder also writes down who had the turn when. One tick of its
// clock is one retired instruction, so that is the time of each, and a
// schedule.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "cli/bundle_recording.h"
#include "decoder/streams.h"
#include "process/timed_streams.h"
#include "recorder/record.h"
#include "symbolic/check.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

struct Case {
  const char* name;
  std::vector<std::string> command;
  bool fails = true;
  uint32_t mtc_period = 6;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// What one thread did in one turn.
struct Turn {
  Tid thread;
  uint64_t start_tick = 0;
  uint64_t insns = 0;
};

std::vector<Turn> ReadTurns(const std::string& path) {
  std::vector<Turn> turns;
  std::ifstream file(path);
  int32_t thread = 0;
  for (uint64_t tick = 0; file >> thread >> tick;) {
    if (!turns.empty()) {
      turns.back().insns = tick - turns.back().start_tick;
    }
    turns.push_back({.thread = Tid(thread), .start_tick = tick});
  }
  EXPECT_TRUE(!turns.empty() && turns.back().thread == Tid(0)) << path;
  return turns;
}

// When each instruction of a thread retired: the n-th one at ticks[n].
std::map<Tid, std::vector<uint64_t>> TrueTicks(const std::vector<Turn>& turns) {
  std::map<Tid, std::vector<uint64_t>> ticks;
  for (const Turn& turn : turns) {
    for (uint64_t i = 1; i <= turn.insns; ++i) {
      ticks[turn.thread].push_back(turn.start_tick + i);
    }
  }
  return ticks;
}

std::vector<ScheduleStep> TrueSchedule(const std::vector<Turn>& turns) {
  std::map<Tid, uint64_t> retired;
  std::vector<ScheduleStep> steps;
  for (const Turn& turn : turns) {
    if (turn.insns > 0) {
      retired[turn.thread] += turn.insns;
      steps.push_back(
          {.thread = turn.thread, .until_insn = retired[turn.thread]});
    }
  }
  return steps;
}

class TruthTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    recorder::RecordOptions options;
    options.command = GetParam().command;
    options.command[0] = Built("tests/" + options.command[0]);
    options.output = scratch_.Path("b.clew");
    options.turns_path = scratch_.Path("turns");
    options.mtc_period = GetParam().mtc_period;
    options.timeout_s = 1;  // for those that hang
    options.plugin_path = Built("bin/clew-qemu-plugin.so");
    const auto outcome = GetParam().fails
                             ? recorder::RecordUntilFail(options, 200, nullptr)
                             : recorder::Record(options);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    insns_ = outcome->insns;
    turns_ = ReadTurns(options.turns_path);
    auto opened = cli::OpenRecording(options.output);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    recording_ = std::move(*opened);
  }

  const Scratch scratch_;
  uint64_t insns_ = 0;  // as the recorder reports them
  std::vector<Turn> turns_;
  std::unique_ptr<cli::BundleRecording> recording_;
};

TEST_P(TruthTest, EveryInstructionRetiredWithinItsInterval) {
  const auto truth = TrueTicks(turns_);
  auto decoded = decoder::TraceStreams::Create(*recording_->trace, {});
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  auto inputs = recording_->recording.open_inputs();
  ASSERT_TRUE(inputs.has_value()) << inputs.error().message;
  process::TimedStreams streams(**decoded, **inputs);
  uint64_t insns = 0;
  for (const auto& [tid, ticks] : truth) {
    insns += ticks.size();
    SCOPED_TRACE(testing::Message() << "thread " << tid.as_int());
    size_t done = 0;
    for (;;) {
      const auto item = streams.Next(tid);
      ASSERT_TRUE(item.has_value()) << item.error().message;
      if (!*item) {
        break;
      }
      const auto* block = std::get_if<StreamBlock>(&**item);
      ASSERT_NE(block, nullptr) << "a gap after " << done;
      ASSERT_LE(done + block->insn_count, ticks.size());
      // Ticks only grow: the first and the last tell of those between.
      ASSERT_LE(block->time.lo.as_int(), ticks[done]) << "instruction " << done;
      done += block->insn_count;
      ASSERT_GE(block->time.hi.as_int(), ticks[done - 1])
          << "instruction " << done - 1;
    }
    EXPECT_EQ(done, ticks.size());
  }
  EXPECT_EQ((*decoded)->stats().time_contradictions, 0u);
  EXPECT_EQ(insns_, insns);
}

TEST_P(TruthTest, TheTrueScheduleIsAWitness) {
  const auto report = symbolic::CheckSchedule(recording_->recording,
                                              TrueSchedule(turns_), nullptr);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->disagreement.value_or(""), "");
  EXPECT_EQ(report->outputs_differing, 0u);
  EXPECT_GT(report->memory.bytes_compared, 0u);
  for (const auto& difference : report->memory.differences) {
    ADD_FAILURE() << fmt::format("{:#x}: {} bytes differ from the core dump",
                                 difference.addr, difference.size_bytes);
  }
}

// Commands are below build/tests.
INSTANTIATE_TEST_SUITE_P(
    Programs, TruthTest,
    testing::Values(
        Case{"bank", {"programs/bank"}}, Case{"bbuf", {"programs/bbuf"}},
        Case{"uaf", {"programs/uaf"}}, Case{"racey", {"programs/racey"}},
        Case{"sbuf", {"programs/sbuf"}}, Case{"pfscan", {"programs/pfscan"}},
        Case{"order", {"programs/order"}},
        Case{"deadlock", {"programs/deadlock"}},
        Case{"bank_mtc0", {"programs/bank"}, true, 0},
        Case{"uaf_mtc2", {"programs/uaf"}, true, 2},
        Case{"static_loop", {"programs/static_loop"}, false},
        Case{"static_calls_mtc0", {"programs/static_calls"}, false, 0},
        Case{"threads", {"recorder/programs/recorder_tracee_threads"}, false},
        Case{"static_threads",
             {"recorder/programs/recorder_tracee_static"},
             false},
        Case{"handler",
             {"recorder/programs/recorder_tracee_endings", "handled"},
             false},
        Case{"returning_handler",
             {"recorder/programs/recorder_tracee_endings", "returning"},
             false},
        Case{"fault_in_rep",
             {"recorder/programs/recorder_tracee_endings", "rep"}},
        Case{"fault", {"recorder/programs/recorder_tracee_endings", "crash"}},
        Case{"processes", {"programs/processes"}, false},
        Case{"sqlite", {"programs/sqlite_threads"}, false}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace clew::e2e
