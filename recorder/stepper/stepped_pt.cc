#include "recorder/stepper/stepped_pt.h"

#include <sys/mman.h>

#include <cstdio>
#include <sstream>
#include <utility>

#include "recorder/software/encoder_description.h"

namespace clew::recorder {
namespace {

using bundle::PerfDataConfig;
using bundle::PerfDataWriter;
using bundle::RecordOrigin;

// Ticks that the kernel takes for a switch. As little as possible: then a
// reader that estimates times shows where it is wrong.
constexpr uint64_t kSwitchTicks = 1;

}  // namespace

Result<std::unique_ptr<SteppedPt>> SteppedPt::Create(
    FileSystem& files, const std::string& perf_data_path,
    const EncoderConfig& encoder, PerfDataConfig config) {
  CLEW_RETURN_IF_ERROR(Validate(encoder));
  DescribeEncoder(encoder, config);
  CLEW_ASSIGN_OR_RETURN(writer,
                        PerfDataWriter::Create(files, perf_data_path, config));
  return std::unique_ptr<SteppedPt>(new SteppedPt(
      files, perf_data_path, encoder, config.core_count, std::move(writer)));
}

SteppedPt::SteppedPt(FileSystem& files, std::string path,
                     const EncoderConfig& encoder, uint32_t core_count,
                     PerfDataWriter writer)
    : files_(files), path_(std::move(path)), writer_(std::move(writer)) {
  for (uint32_t i = 0; i < core_count; ++i) {
    cores_.push_back(std::make_unique<Core>(encoder));
  }
}

RecordOrigin SteppedPt::Origin(Tid thread) const {
  const auto core = core_of_.find(thread);
  return {process_, thread, TscTicks(now_),
          core == core_of_.end() ? CoreId(0) : core->second};
}

void SteppedPt::Keep(Status status) {
  if (status_) {
    status_ = std::move(status);
  }
}

void SteppedPt::OnThread(Tid thread, Tid parent) {
  const size_t count = core_of_.size();
  core_of_[thread] = CoreId(static_cast<uint32_t>(count % cores_.size()));
  parent_of_[thread] = parent;
  if (parent == Tid(0)) {
    process_ = thread.as_int();
    Keep(writer_.AddComm(Origin(thread), "stepped", true));
    return;
  }
  Keep(writer_.AddFork(Origin(parent), process_, thread));
}

void SteppedPt::OnSwitchIn(Tid thread) {
  now_ += kSwitchTicks;
  thread_ = thread;
  core_ = core_of_[thread];
  switched_in_ = true;
  Keep(writer_.AddSwitchIn(Origin(thread)));
  if (thread_ips_[thread].empty()) {
    Keep(writer_.AddItraceStart(Origin(thread)));
  }
}

void SteppedPt::OnKernelReturn(TraceeAddr ip) {
  current().encoder.AdvanceTime(TscTicks(now_));
  current().encoder.Enable(
      ip, switched_in_ ? EnableCause::kSwitchIn : EnableCause::kKernelReturn);
  switched_in_ = false;
}

void SteppedPt::Retire(TraceeAddr ip) {
  current().encoder.AdvanceTime(TscTicks(++now_));
  current().ips.push_back(ip.as_int());
  thread_ips_[thread_].push_back(ip.as_int());
}

void SteppedPt::OnInsn(const SteppedInsn& insn) {
  Retire(insn.ip);
  current().encoder.Branch(insn.branch_class, insn.fall_through, insn.next_ip);
}

void SteppedPt::OnFarTransfer(const SteppedInsn& insn) {
  Retire(insn.ip);
  current().encoder.FarTransfer();
}

void SteppedPt::OnInterrupt(TraceeAddr ip) {
  current().encoder.AdvanceTime(TscTicks(now_));
  current().encoder.Interrupt(ip);
}

void SteppedPt::OnSwitchOut(bool preempted) {
  Keep(writer_.AddSwitchOut(Origin(thread_), preempted));
}

void SteppedPt::OnExit(Tid thread) {
  Keep(writer_.AddExit(Origin(thread), process_, parent_of_[thread]));
}

void SteppedPt::OnMaps(const std::string& maps) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    if (mapped_.insert(line).second) {
      AddMapping(line);
    }
  }
}

// "401000-47d000 r-xp 00001000 fe:01 1234    /path"
void SteppedPt::AddMapping(const std::string& line) {
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long offset = 0;
  char rights[5] = {};
  int path_at = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %n", &begin, &end,
                  rights, &offset, &path_at) != 4 ||
      rights[2] != 'x') {
    return;
  }
  const std::string path = line.substr(static_cast<size_t>(path_at));
  const Tid owner(process_);
  Keep(writer_.AddMmap2(Origin(owner), {.addr = TraceeAddr(begin),
                                        .size_bytes = end - begin,
                                        .file_offset = offset,
                                        .prot = PROT_READ | PROT_EXEC,
                                        .path = path.empty() ? "//anon" : path,
                                        .build_id = {}}));
}

Status SteppedPt::Finish() {
  for (uint32_t i = 0; i < cores_.size(); ++i) {
    const CoreId core(i);
    cores_[i]->encoder.Flush();
    const std::string pt_path = fmt::format("{}.core{}", path_, i);
    CLEW_RETURN_IF_ERROR(
        WriteWholeFile(files_, pt_path, std::as_bytes(std::span(pt(core)))));
    CLEW_RETURN_IF_ERROR(
        writer_.AddAux({process_, Tid(process_), TscTicks(now_), core}, 0,
                       pt(core).size(), 0));
    CLEW_RETURN_IF_ERROR(writer_.AddAuxtrace(core, pt_path));
  }
  CLEW_RETURN_IF_ERROR(std::exchange(status_, Status()));
  CLEW_RETURN_IF_ERROR(writer_.Finish());
  for (uint32_t i = 0; i < cores_.size(); ++i) {
    CLEW_RETURN_IF_ERROR(files_.RemoveAll(fmt::format("{}.core{}", path_, i)));
  }
  return {};
}

}  // namespace clew::recorder
