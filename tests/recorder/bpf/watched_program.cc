#include "tests/recorder/bpf/watched_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/check.h"
#include "common/os/file.h"

namespace clew::recorder::bpf {

std::vector<SeenWrite> KeepingSink::Kept(std::span<const MemoryPiece> pieces) {
  std::vector<SeenWrite> kept;
  for (const MemoryPiece& piece : pieces) {
    kept.push_back(
        {piece.addr.as_int(), {piece.bytes.begin(), piece.bytes.end()}});
  }
  return kept;
}

Status KeepingSink::OnCall(const InputCall& call) {
  Thread& thread = threads[call.who.thread.as_int()];
  SeenCall seen = {.number = call.number,
                   .args = call.args,
                   .result = call.result,
                   .writes = {},
                   .path = {},
                   .output_digest = call.output_digest,
                   .output_bytes = call.output_bytes,
                   .unknown = call.unknown,
                   .lost_before = thread.lost_last};
  if (call.file) {
    seen.path = call.file->path;
    seen.inode = call.file->inode;
  }
  seen.writes = Kept(call.writes);
  thread.calls.push_back(std::move(seen));
  thread.lost_last = 0;
  return {};
}

Status KeepingSink::OnSignal(const InputSignal& signal) {
  SeenSignal seen = {.signal = signal, .frame = Kept(signal.frame)};
  seen.signal.frame = {};
  threads[signal.who.thread.as_int()].signals.push_back(std::move(seen));
  return {};
}

Status KeepingSink::OnLoss(const InputLoss& loss) {
  Thread& thread = threads[loss.who.thread.as_int()];
  thread.lost += loss.count;
  thread.lost_last += loss.count;
  causes.Add(loss.causes);
  return {};
}

Status KeepingSink::OnThreadEnd(const ThreadName& who) {
  threads[who.thread.as_int()].ended = true;
  return {};
}

WaitingProgram::WaitingProgram(std::vector<std::string> command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (std::string& word : command) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  CLEW_CHECK(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  process_ = fork();
  CLEW_CHECK(process_ >= 0, "cannot fork");
  if (process_ == 0) {
    char go = 0;
    close(ends[1]);
    if (read(ends[0], &go, 1) == 1) {
      execv(argv[0], argv.data());
    }
    _exit(127);
  }
  close(ends[0]);
  start_fd_ = ends[1];
}

WaitingProgram::~WaitingProgram() {
  close(start_fd_);
  if (!ended_) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
}

void WaitingProgram::Go() {
  CLEW_CHECK(write(start_fd_, "g", 1) == 1, "the child is gone");
}

bool WaitingProgram::Ended() {
  ended_ = ended_ || waitpid(process_, &status_, WNOHANG) == process_;
  return ended_;
}

Result<Watched> Watch(const std::vector<std::string>& command,
                      InputOptions options, InputSink& sink) {
  WaitingProgram program(command);
  options.processes = {program.process()};
  CLEW_ASSIGN_OR_RETURN(source, KernelInputSource::Open(options));
  CLEW_RETURN_IF_ERROR(source->Start());
  program.Go();
  while (!program.Ended()) {
    CLEW_RETURN_IF_ERROR(source->Wait(10));
    CLEW_RETURN_IF_ERROR(source->Drain(sink));
  }
  CLEW_RETURN_IF_ERROR(source->Finish(sink));
  return Watched{.counts = source->counts(), .status = program.status()};
}

Result<InputRecording> RecordProgram(WaitingProgram& program,
                                     const std::string& path,
                                     InputOptions options) {
  CLEW_ASSIGN_OR_RETURN(
      recording,
      InputRecording::Open(PosixFileSystem(), path,
                           {.process = program.process(), .from_exec = true},
                           std::move(options)));
  CLEW_RETURN_IF_ERROR(recording.Start());
  program.Go();
  return std::move(recording);
}

ScratchFolder::ScratchFolder() {
  path_ = testing::TempDir() + "clew-bpf-XXXXXX";
  CLEW_CHECK(mkdtemp(path_.data()) != nullptr, "no folder {}", path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TraceeProgram(const std::string& name) {
  const char* const folder = std::getenv("CLEW_BINARY_DIR");
  return std::string(folder != nullptr ? folder : "build") +
         "/tests/recorder/bpf/" + name;
}

const std::string& WhyNot() {
  static const std::string why = [] {
    const Status status = ProbeInputs();
    return status ? std::string() : status.error().message;
  }();
  return why;
}

}  // namespace clew::recorder::bpf
