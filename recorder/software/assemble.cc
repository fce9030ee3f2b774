#include "recorder/software/assemble.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <vector>

#include "bundle/manifest/images.h"
#include "bundle/manifest/manifest_writer.h"
#include "bundle/perf_data/perf_data_writer.h"
#include "recorder/images/describe_image.h"
#include "recorder/images/vdso.h"
#include "recorder/software/describe_recording.h"
#include "recorder/software/encoder_description.h"
#include "recorder/software/generated_image.h"
#include "recorder/software/raw_events.h"

namespace clew::recorder {
namespace {

using bundle::BundleImage;
using bundle::BundleWriter;
using bundle::PerfDataConfig;
using bundle::PerfDataWriter;
using bundle::PerfMapping;
using bundle::RecordOrigin;

uint64_t FileBytes(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size)
                                        : 0;
}

// All files that an event says were mapped executable, once each.
Result<std::map<std::string, BundleImage>> FindImages(
    const std::string& events_path, const MappedFiles& files) {
  std::map<std::string, BundleImage> images;
  CLEW_RETURN_IF_ERROR(
      ForEachRawEvent(events_path, [&](const RawEvent& event) -> Status {
        if (event.kind != RawEvent::Kind::kMmap ||
            images.contains(event.text)) {
          return {};
        }
        const std::string file = files.PathOf(event.text);
        CLEW_ASSIGN_OR_RETURN(image, file == event.text
                                         ? DescribeImage(file)
                                         : DescribeImageAs(event.text, file));
        images.emplace(event.text, image);
        return {};
      }));
  return images;
}

// Code that the program made is an image like any other.
Status AddGenerated(BundleWriter& bundle, const GeneratedImage& generated,
                    std::map<std::string, BundleImage>& images) {
  if (generated.bytes.empty()) {
    return {};
  }
  const std::string path = RawFolder(bundle.folder()) + "/generated";
  CLEW_ASSIGN_OR_RETURN(file, bundle.files().Create(path));
  CLEW_RETURN_IF_ERROR(file->Append(generated.bytes));
  CLEW_ASSIGN_OR_RETURN(image,
                        DescribeImageAs(std::string(kGeneratedPath), path));
  images.emplace(image.path, image);
  return {};
}

// Turns the plugin's events into sideband.
class Sideband {
 public:
  Sideband(PerfDataWriter& writer,
           const std::map<std::string, BundleImage>& images,
           const PluginConfig& config)
      : writer_(writer),
        images_(images),
        config_(config),
        traced_(config.scheduler.cores, false) {}

  Status Take(const RawEvent& event) {
    if (process_ == 0) {
      process_ = event.thread.as_int();  // the main thread's id
    }
    end_ = std::max(end_, event.time);
    const RecordOrigin origin{.process = process_,
                              .thread = event.thread,
                              .time = event.time,
                              .core = event.core};
    switch (event.kind) {
      case RawEvent::Kind::kSwitchIn:
        return SwitchIn(origin);
      case RawEvent::Kind::kSwitchOut:
        return writer_.AddSwitchOut(origin, event.flag);
      case RawEvent::Kind::kFork:
        return writer_.AddFork(origin, process_, event.other);
      case RawEvent::Kind::kExit:
        return writer_.AddExit(origin, process_, event.other);
      case RawEvent::Kind::kComm:
        return writer_.AddComm(origin, event.text, event.flag);
      case RawEvent::Kind::kMmap:
        return Mmap(origin, event);
    }
    return {};
  }

  Status MapGenerated(const GeneratedImage& image) {
    for (const GeneratedMapping& of : image.mappings) {
      const RecordOrigin origin{.process = process_,
                                .thread = Tid(process_),
                                .time = of.time,
                                .core = CoreId(0)};
      PerfMapping mapping;
      mapping.addr = of.addr;
      mapping.size_bytes = of.size_bytes;
      mapping.file_offset = of.file_offset;
      mapping.prot = kProtRead | kProtExec;
      mapping.path = kGeneratedPath;
      mapping.build_id = images_.at(mapping.path).build_id;
      CLEW_RETURN_IF_ERROR(writer_.AddMmap2(origin, mapping));
    }
    return {};
  }

  // The cores' PT, as one record each at the end.
  Status AddTraces(uint64_t& pt_bytes) {
    for (uint32_t i = 0; i < config_.scheduler.cores; ++i) {
      const std::string path = RawPtPath(config_.folder, i);
      const uint64_t bytes = FileBytes(path);
      pt_bytes += bytes;
      const RecordOrigin origin{.process = process_,
                                .thread = Tid(process_),
                                .time = end_,
                                .core = CoreId(i)};
      if (bytes > 0) {
        CLEW_RETURN_IF_ERROR(writer_.AddAux(origin, 0, bytes, 0));
      }
      CLEW_RETURN_IF_ERROR(writer_.AddAuxtrace(CoreId(i), path));
    }
    return {};
  }

 private:
  Status SwitchIn(const RecordOrigin& origin) {
    if (!traced_[origin.core.as_int()]) {
      traced_[origin.core.as_int()] = true;
      CLEW_RETURN_IF_ERROR(writer_.AddItraceStart(origin));
    }
    return writer_.AddSwitchIn(origin);
  }

  Status Mmap(const RecordOrigin& origin, const RawEvent& event) {
    PerfMapping mapping;
    mapping.addr = TraceeAddr(event.addr);
    mapping.size_bytes = event.size_bytes;
    mapping.file_offset = event.file_offset;
    mapping.prot = event.prot;
    mapping.path = event.text;
    mapping.build_id = images_.at(event.text).build_id;
    return writer_.AddMmap2(origin, mapping);
  }

  PerfDataWriter& writer_;
  const std::map<std::string, BundleImage>& images_;
  const PluginConfig& config_;
  std::vector<bool> traced_;  // by core
  int32_t process_ = 0;
  TscTicks end_;
};

Result<uint64_t> WritePerfData(BundleWriter& bundle,
                               const RecordOptions& options,
                               const PluginConfig& config,
                               const std::map<std::string, BundleImage>& images,
                               const GeneratedImage& generated) {
  PerfDataConfig perf;
  perf.core_count = config.scheduler.cores;
  DescribeEncoder(config.encoder, perf);
  perf.command = options.command;
  CLEW_ASSIGN_OR_RETURN(
      writer, PerfDataWriter::Create(bundle.files(),
                                     bundle.folder() + "/perf.data", perf));
  Sideband sideband(writer, images, config);
  CLEW_RETURN_IF_ERROR(ForEachRawEvent(
      RawEventsPath(config.folder),
      [&](const RawEvent& event) { return sideband.Take(event); }));
  CLEW_RETURN_IF_ERROR(sideband.MapGenerated(generated));
  uint64_t pt_bytes = 0;
  CLEW_RETURN_IF_ERROR(sideband.AddTraces(pt_bytes));
  CLEW_RETURN_IF_ERROR(writer.Finish());
  return pt_bytes;
}

// inputs.pb is the threads' parts one after another.
Status JoinInputs(BundleWriter& bundle) {
  CLEW_ASSIGN_OR_RETURN(parts, FindRawInputs(bundle.folder()));
  CLEW_ASSIGN_OR_RETURN(out,
                        bundle.files().Create(InputsPath(bundle.folder())));
  for (const std::string& part : parts) {
    CLEW_ASSIGN_OR_RETURN(bytes, MappedFile::Open(part));
    CLEW_RETURN_IF_ERROR(out->Append(bytes.bytes()));
  }
  return out->Sync();
}

// What a replay begins with. Without a trace it leads nowhere.
Status AddReplay(BundleWriter& bundle, const Outcome& outcome, bool is_tapped) {
  if (!outcome.dropped.empty()) {
    CLEW_RETURN_IF_ERROR(bundle.files().RemoveAll(InputsPath(bundle.folder())));
    return bundle.files().RemoveAll(StartPath(bundle.folder()));
  }
  if (!is_tapped) {
    CLEW_RETURN_IF_ERROR(JoinInputs(bundle));
  }
  return bundle.Sync("start.pb");
}

}  // namespace

Result<uint64_t> Assemble(BundleWriter& bundle, const RecordOptions& options,
                          const PluginConfig& config, const Outcome& outcome,
                          const MappedFiles& files) {
  CLEW_ASSIGN_OR_RETURN(images,
                        FindImages(RawEventsPath(config.folder), files));
  CLEW_ASSIGN_OR_RETURN(generated,
                        MakeGeneratedImage(RawCodePath(config.folder)));
  CLEW_RETURN_IF_ERROR(AddGenerated(bundle, generated, images));
  CLEW_ASSIGN_OR_RETURN(
      pt_bytes, WritePerfData(bundle, options, config, images, generated));
  CLEW_RETURN_IF_ERROR(AddReplay(bundle, outcome, options.make_tap != nullptr));
  std::vector<BundleImage> list;
  list.reserve(images.size());
  for (const auto& [path, image] : images) {
    list.push_back(image);
  }
  CLEW_RETURN_IF_ERROR(bundle::CopyImages(bundle, list, OwnVdso()));
  if (outcome.has_core) {
    CLEW_RETURN_IF_ERROR(bundle.Sync("core"));
  }
  CLEW_RETURN_IF_ERROR(bundle::WriteManifest(
      bundle, DescribeRecording(options, config, outcome, list)));
  CLEW_RETURN_IF_ERROR(bundle.files().RemoveAll(RawFolder(bundle.folder())));
  return pt_bytes;
}

}  // namespace clew::recorder
