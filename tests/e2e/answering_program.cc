#include "tests/e2e/answering_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "common/os/child_process.h"
#include "common/os/process_state.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

constexpr int kAnswerLimitMs = 600'000;

}  // namespace

std::string TracesIn(const std::string& folder) {
  std::ifstream status(folder + "/status");
  std::string traces;
  for (std::string line; std::getline(status, line);) {
    for (const char* const name :
         {"TracerPid:", "SigBlk:", "SigCgt:", "Cpus_allowed:"}) {
      traces += line.starts_with(name) ? line + "\n" : "";
    }
  }
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const bool is_code = line.contains(" rwx");
    traces += is_code || line.contains("memfd:") ? line + "\n" : "";
  }
  return traces;
}

AnsweringProgram::AnsweringProgram(const char* program,
                                   const std::string& tunables,
                                   const std::vector<std::string>& arguments) {
  auto input = MakePipe();
  auto output = MakePipe();
  const Fd errors(open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::vector<std::string> command = {
      "/usr/bin/env", "GLIBC_TUNABLES=" + tunables, Tracee(program)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto pid = SpawnProgram(command, {.input = input->read_end.get(),
                                          .output = output->write_end.get(),
                                          .errors = errors.get()});
  pid_ = pid.value();
  to_ = std::move(input->write_end);
  from_ = std::move(output->read_end);
  EXPECT_NE(Ask(), "");  // it runs, with all of its threads
}

AnsweringProgram::~AnsweringProgram() {
  kill(pid_, SIGKILL);
  (void)WaitForChild(pid_);
}

void AnsweringProgram::Tell(const char* line) const {
  EXPECT_EQ(write(to_.get(), line, 2), 2);
}

std::string AnsweringProgram::Ask(const char* line) const {
  Tell(line);
  pollfd answer = {.fd = from_.get(), .events = POLLIN, .revents = 0};
  char bytes[80] = {};
  return poll(&answer, 1, kAnswerLimitMs) == 1 &&
                 read(from_.get(), bytes, sizeof(bytes) - 1) > 0
             ? bytes
             : "";
}

void AnsweringProgram::AwaitRecorder() const {
  while (ProcessState("/proc/" + Number() + "/stat") != 't') {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace clew::e2e
