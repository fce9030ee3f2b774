// Goal: a recording says nothing false. Every instruction retired within the
// time that decoding gives it, and the order in which everything truly happened
// passes the checker of schedules and ends in the memory of the core dump; with
// another failure it does not. The recording's formula holds in that order.
// Method: the recorder also writes down who had the turn when. One tick of its
// clock is one retired instruction, so that is the time of each, and a
// schedule.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <map>

#include "constraints/check_order.h"
#include "decoder/streams.h"
#include "follower/bundle/bundle_recording.h"
#include "follower/describe_run.h"
#include "follower/timed_streams.h"
#include "recorder/software/record.h"
#include "recorder/software/until_fail.h"
#include "solver/check.h"
#include "solver/search/guess_run.h"
#include "symbolic/trace_builder.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/truth/true_schedule.h"

namespace clew::e2e {
namespace {

constexpr uint64_t kFormulaInsnsMax = 1'000'000;
constexpr const char* kFaults = "recorder/programs/recorder_tracee_faults";

struct TruthCase {
  const char* name;
  std::vector<std::string> command;
  bool fails = true;
  uint32_t mtc_period = 6;
  uint32_t timeout_s = 100;
  recorder::SoftwareSource source = recorder::SoftwareSource::kQemu;
};
void PrintTo(const TruthCase& c, std::ostream* out) { *out << c.name; }

constexpr uint64_t kNowhere = 0x123000;  // below all mappings

struct Recorded {
  Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  uint64_t insns = 0;  // as the recorder reports them
  std::vector<Turn> turns;
};

Result<std::unique_ptr<Recorded>> RecordCase(const TruthCase& c,
                                             const std::string& program) {
  auto recorded = std::make_unique<Recorded>();
  recorder::RecordOptions options;
  options.source = c.source;
  options.command = c.command;
  options.command[0] = program;
  options.output = recorded->bundle;
  options.turns_path = recorded->scratch.Path("turns");
  options.mtc_period = c.mtc_period;
  options.timeout_s = c.timeout_s;
  options.plugin_path = Built("bin/clew-qemu-plugin.so");
  CLEW_ASSIGN_OR_RETURN(
      outcome,
      c.fails ? recorder::RecordUntilFail(options, {.tries_max = 200}, nullptr)
              : recorder::Record(options));
  recorded->insns = outcome.insns;
  CLEW_ASSIGN_OR_RETURN(turns, ReadTurns(options.turns_path));
  recorded->turns = std::move(turns);
  return recorded;
}

// The tests of a suite share the recording of a case.
class TruthTest : public testing::TestWithParam<TruthCase> {
 protected:
  static void TearDownTestSuite() { recorded_.clear(); }

  void SetUp() override {
    const TruthCase& c = GetParam();
    const std::string program = Built("tests/" + c.command[0]);
    if (!std::filesystem::exists(program)) {
      GTEST_SKIP() << program << " was not built: configure says why";
    }
    if (!recorded_.contains(c.name)) {
      auto recorded = RecordCase(c, program);
      ASSERT_TRUE(recorded.has_value()) << recorded.error().message;
      recorded_.emplace(c.name, std::move(*recorded));
    }
    auto opened = follower::OpenRecording(recorded().bundle);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    recording_ = std::move(*opened);
  }

  void TearDown() override {
    if (const auto found = recorded_.find(GetParam().name);
        found != recorded_.end() && HasFailure()) {
      found->second->scratch.Keep();
    }
  }

  const Recorded& recorded() const { return *recorded_.at(GetParam().name); }

  std::unique_ptr<follower::BundleRecording> recording_;

 private:
  static inline std::map<std::string, std::unique_ptr<Recorded>> recorded_;
};

TEST_P(TruthTest, EveryInstructionRetiredWithinItsInterval) {
  const auto truth = TrueTicks(recorded().turns);
  auto decoded = decoder::TraceStreams::Create(*recording_->trace, {});
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  auto inputs = recording_->recording.open_inputs();
  ASSERT_TRUE(inputs.has_value()) << inputs.error().message;
  follower::TimedStreams streams(**decoded, **inputs, false);
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
  EXPECT_EQ(recorded().insns, insns);
}

TEST_P(TruthTest, TheTrueScheduleIsAWitness) {
  const auto report = solver::CheckSchedule(
      recording_->recording, TrueSchedule(recorded().turns), nullptr);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->disagreement.value_or(""), "");
  EXPECT_EQ(report->outputs_differing, 0u);
  EXPECT_GT(report->memory.bytes_compared, 0u);
  EXPECT_GT(report->registers.compared, 0u);
  for (const auto& difference : report->registers.differences) {
    ADD_FAILURE() << fmt::format("{} of thread {}: {:#x}, not {:#x}",
                                 difference.name, difference.thread,
                                 difference.machine, difference.dumped);
  }
  for (const auto& difference : report->memory.differences) {
    ADD_FAILURE() << fmt::format("{:#x}: {} bytes differ from the core dump",
                                 difference.addr, difference.size_bytes);
  }
}

TEST_P(TruthTest, WithAnotherFailureTheTrueScheduleIsNone) {
  follower::Recording& recording = recording_->recording;
  if (recording.failure.kind != FailureKind::kSignal) {
    GTEST_SKIP() << "ends without a signal";
  }
  const auto steps = TrueSchedule(recorded().turns);
  const Failure truth = recording.failure;
  for (const int32_t signal : {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS}) {
    recording.failure.signal = signal;
    // Without an address, any access might be that of a SIGBUS.
    recording.failure.addr =
        signal == truth.signal ? truth.addr : TraceeAddr(kNowhere);
    const auto report = solver::CheckSchedule(recording, steps, nullptr);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->disagreement.has_value(), signal != truth.signal)
        << report->disagreement.value_or("");
  }
  recording.failure = truth;
  recording.failure.ip = TraceeAddr(truth.ip.as_int() + 1);
  EXPECT_TRUE(solver::CheckSchedule(recording, steps, nullptr)->disagreement);
}

class ChannelTest : public TruthTest {};

TEST_P(ChannelTest, ARegisterThatDiffersFromTheCoreDumpIsTold) {
  follower::Recording& recording = recording_->recording;
  const auto steps = TrueSchedule(recorded().turns);
  EXPECT_TRUE(
      AgreesWithCoreDump(*solver::CheckSchedule(recording, steps, nullptr)));
  ASSERT_FALSE(recording.dumped_registers.empty());
  recording.dumped_registers[0].gpr[kRbx] ^= 1;
  const auto report = solver::CheckSchedule(recording, steps, nullptr);
  EXPECT_FALSE(report->disagreement);
  EXPECT_FALSE(AgreesWithCoreDump(*report));
  ASSERT_EQ(report->registers.differences.size(), 1u);
  EXPECT_EQ(report->registers.equal + 1, report->registers.compared);
  EXPECT_EQ(report->registers.differences[0].name, "rbx");
  EXPECT_EQ(report->registers.differences[0].thread, recording.failure.thread);
}

// Goal: without the help of time no thread takes from a pipe, socket pair or
// eventfd what nobody put there yet.
// Method: whoever takes is run before whoever puts, as far as it goes. The
// program makes its threads in that order.
TEST_P(ChannelTest, WhoTakesWaitsForWhoPuts) {
  using follower::Advance;
  auto session = follower::OpenedRecording::Open(recording_->recording);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  follower::Process process = (*session)->start();
  // In the order in which they were made: numbers may begin anew meanwhile.
  const int32_t first = recording_->recording.start.first.thread.as_int();
  std::map<uint32_t, size_t> threads;
  for (size_t i = 0; i < process.thread_count(); ++i) {
    threads.emplace(process.tid(i).as_int() - first, i);
  }
  ASSERT_EQ(threads.size(), 4u);
  const size_t last = threads.rbegin()->second;
  for (const auto& [number, thread] : threads) {
    const auto advance = process.Run(thread, UINT64_MAX);
    ASSERT_TRUE(advance.has_value()) << advance.error().message;
    EXPECT_EQ(advance->stop, thread == last ? Advance::Stop::kStreamEnded
                                            : Advance::Stop::kBlocked)
        << follower::Describe(process.contradiction());
    EXPECT_EQ(
        process.thread(thread).wait.taking.channel == follower::Channels::kNone,
        thread == last);
  }
  const size_t of_pipe = std::next(threads.begin(), 2)->second;
  EXPECT_TRUE(process.CanRun(of_pipe).value_or(false));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ChannelTest,
    testing::Values(TruthCase{"channels", {"programs/channels"}}),
    [](const auto& parameter) { return parameter.param.name; });

// Runs the first thread until it has made the other two.
void CreateAll(follower::Process& process) {
  while (process.thread(2).phase == follower::ThreadPhase::kNotCreated) {
    ASSERT_EQ(process.Run(0, process.thread(0).retired + 1)->stop,
              follower::Advance::Stop::kReached)
        << follower::Describe(process.contradiction());
  }
}

class SignalOrderTest : public TruthTest {};

// Goal: without the help of time no thread handles a signal that another one
// has yet to send.
// Method: the thread that is sent three signals runs as far as it goes before
// the one that sends them.
TEST_P(SignalOrderTest, WhoIsSignalledWaitsForWhoSends) {
  using follower::Advance;
  auto session = follower::OpenedRecording::Open(recording_->recording);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  follower::Process process = (*session)->start();
  process.mutable_memory().EnableDigest();
  ASSERT_EQ(process.thread_count(), 3u);
  const auto run = [&](size_t thread, uint64_t until) {
    const auto advance = process.Run(thread, until);
    EXPECT_TRUE(advance.has_value()) << advance.error().message;
    return advance->stop;
  };
  CreateAll(process);
  for (int signals = 0; signals < 3; ++signals) {
    SCOPED_TRACE(signals);
    EXPECT_EQ(run(1, UINT64_MAX), Advance::Stop::kBlocked);
    EXPECT_FALSE(process.CanRun(1).value_or(true));
    const follower::Process::Mark mark = process.SetMark();
    const uint64_t waits = process.StateDigest();
    const auto send_one = [&] {
      while (!process.CanRun(1).value_or(true)) {
        ASSERT_EQ(run(2, process.thread(2).retired + 1),
                  Advance::Stop::kReached);
      }
    };
    send_one();
    process.RollBack(mark);
    EXPECT_EQ(process.StateDigest(), waits);
    EXPECT_FALSE(process.CanRun(1).value_or(true)) << "not taken back";
    send_one();
  }
  EXPECT_EQ(run(1, UINT64_MAX), Advance::Stop::kStreamEnded);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, SignalOrderTest,
    testing::Values(TruthCase{"signalled", {"programs/signalled"}}),
    [](const auto& parameter) { return parameter.param.name; });

class ReadsTest : public TruthTest {};

// Goal: what write(2) is given to read says whether another thread's store came
// before it, though nothing else does; and the search finds it out.
// Method: both orders on one recording.
TEST_P(ReadsTest, ACallThatIsGivenOtherMemoryContradicts) {
  using follower::Advance;
  auto session = follower::OpenedRecording::Open(recording_->recording);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  follower::Process process = (*session)->start();
  ASSERT_EQ(process.thread_count(), 3u);
  CreateAll(process);
  // Both wait to be let go by main.
  ASSERT_EQ(process.Run(1, UINT64_MAX)->stop, Advance::Stop::kBlocked);
  ASSERT_EQ(process.Run(2, UINT64_MAX)->stop, Advance::Stop::kBlocked);
  while (!process.CanRun(1).value_or(true)) {
    ASSERT_EQ(process.Run(0, process.thread(0).retired + 1)->stop,
              Advance::Stop::kReached);
  }
  const auto run_two_calls = [&](size_t thread) {
    const uint64_t calls = process.thread(thread).input + 2;
    auto stop = Advance::Stop::kReached;
    while (stop == Advance::Stop::kReached &&
           process.thread(thread).input < calls) {
      stop = process.Run(thread, process.thread(thread).retired + 1)->stop;
    }
    return stop;
  };
  const follower::Process::Mark mark = process.SetMark();
  int possible = 0;
  for (const auto& order : {std::array{1, 2}, std::array{2, 1}}) {
    bool contradicts = false;
    for (const int thread : order) {
      contradicts = contradicts || run_two_calls(static_cast<size_t>(thread)) ==
                                       Advance::Stop::kContradiction;
    }
    if (contradicts) {
      EXPECT_TRUE(process.contradiction().text.starts_with(
          "write is given other memory to read"))
          << process.contradiction().text;
    }
    possible += contradicts ? 0 : 1;
    process.RollBack(mark);
  }
  EXPECT_EQ(possible, 1);
}

TEST_P(ReadsTest, TheSearchFindsTheOrder) {
  const ProgramOutput solved = ClewAtLeisure("solve", {recorded().bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ReadsTest,
    testing::Values(TruthCase{"given", {"programs/given"}}),
    [](const auto& parameter) { return parameter.param.name; });

// The constraints of a recording, written down at the addresses of what truly
// happened, hold in its order.
TEST_P(TruthTest, TheTrueScheduleSatisfiesItsFormula) {
  const follower::Recording& recording = recording_->recording;
  auto session = follower::OpenedRecording::Open(recording);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  const follower::Process& start = (*session)->start();
  const uint64_t slack = recording.clock_slack_ticks;
  solver::WordTable words(start.thread_count(), slack);
  solver::LearnAlongPaths(*solver::FirstPoint(start, slack, {}),
                          kFormulaInsnsMax, recording.failure, words, nullptr);
  if (recorded().insns > kFormulaInsnsMax) {
    GTEST_SKIP() << recorded().insns
                 << " instructions are too many for a formula";
  }
  const auto steps = TrueSchedule(recorded().turns);
  constraints::ExprPool pool;
  const auto built =
      symbolic::BuildTrace(start, words.ContestedWords(), pool,
                           {.clock_slack_ticks = slack, .along = steps});
  ASSERT_TRUE(built.has_value()) << built.error().message;
  EXPECT_TRUE(built->consistent);
  const Status valid = constraints::Validate(built->trace);
  ASSERT_TRUE(valid.has_value()) << valid.error().message;
  const Status holds = constraints::CheckOrder(
      built->trace, symbolic::AccessOrderOf(*built, (*session)->tape(), steps));
  EXPECT_TRUE(holds.has_value()) << holds.error().message;
}

// Commands are below build/tests.
INSTANTIATE_TEST_SUITE_P(
    Programs, TruthTest,
    testing::Values(
        TruthCase{"bank", {"programs/bank"}},
        TruthCase{"racey", {"programs/racey"}},
        TruthCase{"order", {"programs/order"}},
        TruthCase{"deadlock", {"programs/deadlock"}},
        TruthCase{"bank_mtc0", {"programs/bank"}, true, 0},
        TruthCase{"static_loop", {"programs/static_loop"}, false},
        TruthCase{"static_calls_mtc0", {"programs/static_calls"}, false, 0},
        TruthCase{
            "threads", {"recorder/programs/recorder_tracee_threads"}, false},
        TruthCase{"static_threads",
                  {"recorder/programs/recorder_tracee_static"},
                  false},
        TruthCase{"returning_handler",
                  {"recorder/programs/recorder_tracee_endings", "returning"},
                  false},
        TruthCase{"fpstate", {"programs/fpstate"}, false},
        TruthCase{"two_signals_at_once",
                  {"recorder/programs/recorder_tracee_signals", "together"},
                  false},
        TruthCase{"cancelled_in_sigwait",
                  {"recorder/programs/recorder_tracee_signals", "cancel"},
                  false},
        TruthCase{"time_limit_in_read",
                  {"recorder/programs/recorder_tracee_endings", "outside"},
                  true,
                  6,
                  /*timeout_s=*/1},
        TruthCase{"fault_in_rep",
                  {"recorder/programs/recorder_tracee_endings", "rep"}},
        TruthCase{
            "requests", {"recorder/programs/recorder_tracee_requests"}, false},
        TruthCase{
            "queues", {"recorder/programs/recorder_tracee_queues"}, false},
        TruthCase{"mapped_anew", {"programs/mapped_anew"}, false},
        TruthCase{"mapped_twice", {"programs/mapped_twice"}, false},
        TruthCase{"mapped_file", {"programs/mapped_file"}},
        TruthCase{"channels", {"programs/channels"}},
        TruthCase{"discarded", {"programs/discarded"}, false},
        TruthCase{"given", {"programs/given"}},
        TruthCase{"signalled", {"programs/signalled"}},
        TruthCase{"unmapped", {kFaults, "unmapped"}},
        TruthCase{"illegal", {kFaults, "illegal"}},
        TruthCase{"sent", {kFaults, "sent"}},
        TruthCase{"jit", {"programs/jit"}, false},
        TruthCase{"processes", {"programs/processes"}, false}),
    [](const auto& parameter) { return parameter.param.name; });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, TruthTest,
    testing::Values(
        TruthCase{"bbuf", {"programs/bbuf"}},
        TruthCase{"uaf", {"programs/uaf"}},
        TruthCase{"sbuf", {"programs/sbuf"}},
        TruthCase{"pfscan", {"programs/pfscan"}},
        TruthCase{"uaf_mtc2", {"programs/uaf"}, true, 2},
        TruthCase{"handler",
                  {"recorder/programs/recorder_tracee_endings", "handled"},
                  false},
        TruthCase{"fault",
                  {"recorder/programs/recorder_tracee_endings", "crash"}},
        TruthCase{"lmdb", {"programs/lmdb_threads"}},
        TruthCase{"protection", {kFaults, "protection"}},
        TruthCase{"noncanonical", {kFaults, "noncanonical"}},
        TruthCase{"misaligned", {kFaults, "misaligned"}},
        TruthCase{"jump", {kFaults, "jump"}},
        TruthCase{"divide", {kFaults, "divide"}},
        TruthCase{"breakpoint", {kFaults, "breakpoint"}},
        TruthCase{"bus", {kFaults, "bus"}},
        TruthCase{"alarm", {kFaults, "alarm"}},
        TruthCase{"sqlite", {"programs/sqlite_threads"}, false}),
    [](const auto& parameter) { return parameter.param.name; });

// The same of programs that are stepped on this CPU: each as its first seed
// runs it.
TruthCase Stepped(const char* name, std::vector<std::string> command) {
  TruthCase c = {name, std::move(command), /*fails=*/false};
  c.source = recorder::SoftwareSource::kStep;
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Stepped, TruthTest,
    testing::Values(Stepped("racey", {"programs/racey"}),
                    Stepped("replaced", {"programs/replaced"})),
    [](const auto& parameter) { return parameter.param.name; });

// And by a copy of their code, as by default.
TruthCase Traced(const char* name, std::vector<std::string> command,
                 bool fails = true) {
  TruthCase c = {name, std::move(command), fails};
  c.source = recorder::SoftwareSource::kTracer;
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Traced, TruthTest,
    testing::Values(Traced("bank", {"programs/bank"}),
                    Traced("bbuf", {"programs/bbuf"}),
                    Traced("uaf", {"programs/uaf"}),
                    Traced("mapped_twice", {"programs/mapped_twice"}, false),
                    Traced("deadlock", {"programs/deadlock"})),
    [](const auto& parameter) { return parameter.param.name; });

// In tools/test --all: each takes seconds.
INSTANTIATE_TEST_SUITE_P(
    MoreStepped, TruthTest,
    testing::Values(
        Stepped("uaf", {"programs/uaf"}), Stepped("bank", {"programs/bank"}),
        Stepped("pfscan", {"programs/pfscan"}),
        Stepped("deadlock", {"programs/deadlock"}),
        Stepped("static_loop", {"programs/static_loop"}),
        Stepped("threads", {"recorder/programs/recorder_tracee_threads"}),
        Stepped("static_threads", {"recorder/programs/recorder_tracee_static"}),
        Stepped("returning_handler",
                {"recorder/programs/recorder_tracee_endings", "returning"}),
        Stepped("handler",
                {"recorder/programs/recorder_tracee_endings", "handled"}),
        Stepped("fpstate", {"programs/fpstate"}),
        Stepped("jit", {"programs/jit"}),
        Stepped("children", {"programs/children"}),
        Stepped("vectors", {"programs/vectors"}),
        Stepped("wide_vectors", {"programs/wide_vectors"}),
        Stepped("vector_total", {"programs/vector_total"}),
        Stepped("wide_total", {"programs/wide_total"}),
        Stepped("changed_text", {"programs/wide/changed_text"}),
        Stepped("dot_product", {"programs/wide/dot_product"}),
        Stepped("early_table", {"programs/wide/early_table"}),
        Stepped("torn_copy", {"programs/wide/torn_copy"}),
        Stepped("two_signals_at_once",
                {"recorder/programs/recorder_tracee_signals", "together"}),
        Stepped("cancelled_in_sigwait",
                {"recorder/programs/recorder_tracee_signals", "cancel"}),
        Stepped("fault_in_rep",
                {"recorder/programs/recorder_tracee_endings", "rep"}),
        Stepped("requests", {"recorder/programs/recorder_tracee_requests"}),
        Stepped("queues", {"recorder/programs/recorder_tracee_queues"}),
        Stepped("given", {"programs/given"}),
        Stepped("mapped_anew", {"programs/mapped_anew"}),
        Stepped("mapped_twice", {"programs/mapped_twice"}),
        Stepped("mapped_file", {"programs/mapped_file"}),
        Stepped("channels", {"programs/channels"}),
        Stepped("discarded", {"programs/discarded"}),
        Stepped("signalled", {"programs/signalled"}),
        Stepped("lmdb", {"programs/lmdb_threads"}),
        Stepped("unmapped", {kFaults, "unmapped"}),
        Stepped("protection", {kFaults, "protection"}),
        Stepped("noncanonical", {kFaults, "noncanonical"}),
        Stepped("misaligned", {kFaults, "misaligned"}),
        Stepped("jump", {kFaults, "jump"}),
        Stepped("divide", {kFaults, "divide"}),
        Stepped("illegal", {kFaults, "illegal"}),
        Stepped("breakpoint", {kFaults, "breakpoint"}),
        Stepped("bus", {kFaults, "bus"}), Stepped("sent", {kFaults, "sent"}),
        Stepped("alarm", {kFaults, "alarm"}),
        Stepped("processes", {"programs/processes"})),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace clew::e2e
