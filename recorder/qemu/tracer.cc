#include "recorder/qemu/tracer.h"

#include "common/text/one_line.h"

namespace clew::recorder {

std::vector<ExecMapping> CodeOfFiles(const std::vector<GuestRegion>& regions) {
  std::vector<ExecMapping> mappings;
  for (const GuestRegion& region : regions) {
    if ((region.prot & kProtExec) != 0 && region.name.starts_with('/')) {
      mappings.push_back({.addr = region.addr,
                          .size_bytes = region.size_bytes,
                          .file_offset = region.file_offset,
                          .prot = region.prot,
                          .path = region.name});
    }
  }
  return mappings;
}

Result<std::unique_ptr<Tracer>> Tracer::Create(const PluginConfig& config,
                                               SizeLimit& limit) {
  CLEW_ASSIGN_OR_RETURN(events,
                        RawFile::Create(RawEventsPath(config.folder), &limit));
  std::unique_ptr<Tracer> tracer(new Tracer(config, limit, std::move(events)));
  for (uint32_t i = 0; i < config.scheduler.cores; ++i) {
    CLEW_RETURN_IF_ERROR(tracer->AddCore());
  }
  if (!config.turns_path.empty()) {
    CLEW_ASSIGN_OR_RETURN(turns, RawFile::Create(config.turns_path));
    tracer->turns_ = std::move(turns);
  }
  return tracer;
}

Result<uint32_t> Tracer::AddCore() {
  const uint32_t number = core_count();
  CLEW_ASSIGN_OR_RETURN(
      file, RawFile::Create(RawPtPath(config_.folder, number), &limit_));
  Core core;
  core.sink = std::make_unique<RawFileSink>(std::move(file));
  core.encoder = std::make_unique<CoreEncoder>(config_.encoder, *core.sink);
  cores_.push_back(std::move(core));
  return number;
}

void Tracer::SwitchIn(uint32_t core, Tid thread, uint64_t now) {
  ++switches_;
  encoder(core).AdvanceTime(TscTicks(now));
  events_.Append(fmt::format("in {} {} {}\n", core, thread, now));
}

void Tracer::SwitchOut(uint32_t core, Tid thread, uint64_t now,
                       bool preempted) {
  encoder(core).AdvanceTime(TscTicks(now));
  events_.Append(
      fmt::format("out {} {} {} {:d}\n", core, thread, now, preempted));
}

void Tracer::Fork(uint32_t core, Tid parent, Tid child, uint64_t now) {
  events_.Append(fmt::format("fork {} {} {} {}\n", core, parent, now, child));
}

void Tracer::Exit(uint32_t core, Tid thread, Tid parent, uint64_t now) {
  events_.Append(fmt::format("exit {} {} {} {}\n", core, thread, now, parent));
}

void Tracer::Comm(uint32_t core, Tid thread, uint64_t now, bool exec,
                  std::string_view name) {
  events_.Append(fmt::format("comm {} {} {} {:d} {}\n", core, thread, now, exec,
                             EscapeLine(name)));
}

void Tracer::Mmap(uint32_t core, Tid thread, uint64_t now,
                  const ExecMapping& mapping) {
  events_.Append(fmt::format("mmap {} {} {} {} {} {} {} {}\n", core, thread,
                             now, mapping.addr, mapping.size_bytes,
                             mapping.file_offset, mapping.prot,
                             EscapeLine(mapping.path)));
}

Status Tracer::Close() {
  Status status = events_.Close();
  if (turns_.has_value()) {
    if (Status closed = turns_->Close(); !closed && status) {
      status = closed;
    }
  }
  for (Core& core : cores_) {
    core.encoder->Flush();
    if (Status closed = core.sink->file().Close(); !closed && status) {
      status = closed;
    }
  }
  return status;
}

void Tracer::Abandon() {
  events_.Abandon();
  if (turns_.has_value()) {
    turns_->Abandon();
  }
  for (Core& core : cores_) {
    core.sink->file().Abandon();
  }
}

}  // namespace clew::recorder
