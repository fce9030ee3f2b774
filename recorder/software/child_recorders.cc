#include "recorder/software/child_recorders.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <span>
#include <utility>

#include "common/check.h"
#include "common/os/child_process.h"
#include "common/os/file.h"

namespace clew::recorder {
namespace {

// The recorder that made this one may be bound to one CPU.
void TakeCpusOf(int32_t process) {
  cpu_set_t cpus;
  if (sched_getaffinity(process, sizeof(cpus), &cpus) == 0) {
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
  }
}

[[noreturn]] void RecordChild(RecordOptions options, const std::string& folder,
                              int socket) {
  const auto from = ReceiveValue<HandedOver>(socket);
  if (!from) {  // it could not be handed over
    _exit(kExitEnvironment);
  }
  TakeCpusOf(from->process);
  options.process = from->process;
  options.handed_over = from;
  options.surroundings.reset();
  options.output = folder + "/" + BundleOfChild(from->process);
  options.keep_only_if_failed = true;
  options.timeout_s = 0;
  options.is_over = [flag = options.is_over_for_children] {
    return flag->load();
  };
  if (options.fail_on.rule == FailOn::Rule::kPanics) {
    options.fail_on.rule = FailOn::Rule::kReports;
  }
  (void)SendAnswer(socket, Record(options));
  _exit(kExitOk);
}

// For which --fail-on has named an exit status.
bool NamesStatus(const FailOn& fail_on) {
  return fail_on.rule == FailOn::Rule::kEquals ||
         fail_on.rule == FailOn::Rule::kDiffers;
}

}  // namespace

std::string BundleOfChild(int32_t child) { return fmt::format("{}", child); }

bool IsFailureOfChild(const Failure& failure) {
  // That end a process with a core dump (signal(7)), without SIGQUIT, which a
  // terminal sends.
  constexpr std::array kSignals = {SIGABRT, SIGBUS,  SIGFPE,  SIGILL, SIGSEGV,
                                   SIGSYS,  SIGTRAP, SIGXCPU, SIGXFSZ};
  return failure.kind == FailureKind::kExit ||
         failure.kind == FailureKind::kHang ||
         (failure.kind == FailureKind::kSignal &&
          std::ranges::find(kSignals, failure.signal) != kSignals.end());
}

const ChildRecorders::Failed* ChooseFailure(
    const RecordOutcome& program,
    const std::vector<ChildRecorders::Failed>& children,
    const FailOn& fail_on) {
  const auto has_failed = [](const RecordOutcome& run) {
    return run.failure.kind != FailureKind::kNone;
  };
  const auto by_status = [&](const RecordOutcome& run) {
    return run.failure.kind == FailureKind::kExit && NamesStatus(fail_on);
  };
  using Failed = ChildRecorders::Failed;
  const Failed* first = nullptr;   // of those that failed by themselves
  const Failed* passed = nullptr;  // the last before the program
  for (const Failed& child : children) {
    if (by_status(child.run)) {
      if (child.run.ended_ns <= program.ended_ns &&
          (passed == nullptr || child.run.ended_ns > passed->run.ended_ns)) {
        passed = &child;
      }
    } else if (first == nullptr || child.run.ended_ns < first->run.ended_ns) {
      first = &child;
    }
  }
  if (has_failed(program) && !by_status(program) &&
      (first == nullptr || program.ended_ns <= first->run.ended_ns)) {
    return nullptr;
  }
  return first != nullptr ? first : has_failed(program) ? passed : nullptr;
}

std::vector<ChildRecorders::Failed> TakeOvertaken(
    std::vector<ChildRecorders::Failed>& failed, const FailOn& fail_on) {
  using Failed = ChildRecorders::Failed;
  const auto by_status = [&](const Failed& child) {
    return child.run.failure.kind == FailureKind::kExit && NamesStatus(fail_on);
  };
  const auto ended_ns = [](const Failed& child) { return child.run.ended_ns; };
  const auto others = std::ranges::partition(failed, by_status);
  std::vector<Failed> left;
  if (failed.begin() != others.begin()) {
    left.push_back(*std::ranges::max_element(failed.begin(), others.begin(), {},
                                             ended_ns));
  }
  if (!others.empty()) {
    left.push_back(*std::ranges::min_element(others, {}, ended_ns));
  }
  std::erase_if(failed, [&](const Failed& child) {
    return std::ranges::find(left, child.child, &Failed::child) != left.end();
  });
  return std::exchange(failed, std::move(left));
}

ChildRecorders::ChildRecorders(RecordOptions options, std::string folder,
                               std::function<void()> in_child)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      in_child_(std::move(in_child)) {
  if (options_.is_over_for_children == nullptr) {
    void* const shared =
        mmap(nullptr, sizeof(*options_.is_over_for_children),
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CLEW_CHECK(shared != MAP_FAILED, "no memory for a page");
    options_.is_over_for_children = new (shared) std::atomic<bool>(false);
    is_of_program_ = true;
  }
}

ChildRecorders::~ChildRecorders() {
  (void)Collect();
  if (is_of_program_) {
    munmap(options_.is_over_for_children,
           sizeof(*options_.is_over_for_children));
  }
}

// A process that only has to wait for what it is to do.
Result<ChildRecorders::Recorder> ChildRecorders::Start() const {
  CLEW_ASSIGN_OR_RETURN(helper, ForkHelper("a child of the program"));
  if (helper.process != 0) {
    return Recorder{.process = helper.process,
                    .socket = std::move(helper.socket)};
  }
  for (const Recorder& other : recorders_) {
    close(other.socket.get());
  }
  in_child_();
  RecordChild(options_, folder_, helper.socket.get());
}

Status ChildRecorders::Take(TracedProcess& process, Tid child) {
  TakeAnswers(false);
  RemoveOvertaken();
  const auto leave = [&](const Error& error) {
    done_.unrecorded.push_back(
        fmt::format("process {}: {}", child, error.message));
    return process.LetGo(child);
  };
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  auto recorder = Start();
  if (!recorder) {
    return leave(recorder.error());
  }
  const auto over = process.HandOver(child, recorder->process);
  if (!over) {
    kill(recorder->process, SIGKILL);
    (void)WaitForChild(recorder->process);
    return leave(over.error());
  }
  recorder->child = child.as_int();
  (void)send(recorder->socket.get(), &*over, sizeof(*over), MSG_NOSIGNAL);
  recorders_.push_back(std::move(*recorder));
  return {};
}

ChildRecorders::Children ChildRecorders::Collect() {
  if (is_of_program_) {
    options_.is_over_for_children->store(true);
  }
  TakeAnswers(true);
  return std::move(done_);
}

void ChildRecorders::TakeAnswers(bool may_block) {
  std::erase_if(recorders_, [&](Recorder& recorder) {
    bool lives = true;
    std::optional<Result<RecordOutcome>> answer;
    do {
      lives = recorder.answer.ReadFrom(recorder.socket.get(), may_block);
      answer = recorder.answer.Take();
    } while (may_block && lives && !answer);
    if (lives && !answer) {
      return false;
    }
    (void)WaitForChild(recorder.process);
    Note(recorder, answer);
    return true;
  });
}

// A program may have many that fail by a status.
void ChildRecorders::RemoveOvertaken() {
  for (const Failed& child : TakeOvertaken(done_.failed, options_.fail_on)) {
    std::error_code error;
    std::filesystem::remove_all(folder_ + "/" + BundleOfChild(child.child),
                                error);
  }
}

void ChildRecorders::Note(const Recorder& recorder,
                          const std::optional<Result<RecordOutcome>>& answer) {
  if (!answer || !*answer) {
    done_.unrecorded.push_back(
        fmt::format("process {}: {}", recorder.child,
                    answer ? answer->error().message : "its recorder ended"));
    return;
  }
  const RecordOutcome& outcome = **answer;
  done_.unrecorded.insert(done_.unrecorded.end(), outcome.unrecorded.begin(),
                          outcome.unrecorded.end());
  if (outcome.kept) {
    done_.failed.push_back({.child = recorder.child, .run = outcome});
  }
}

}  // namespace clew::recorder
