#include "daemon/source/saver.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "bundle/manifest/manifest_edit.h"

namespace clew::daemon {

using bundle::BundleWriter;
using bundle::EditManifest;
using bundle::ManifestEdits;

Saver::~Saver() {
  for (auto& [id, running] : saves_) {
    running->core.End(false);
  }
  for (auto& [id, running] : saves_) {
    running->thread.join();
  }
}

Result<Saver::Started> Saver::Start(PtSource& source, SaveJob job, Done done) {
  CLEW_ASSIGN_OR_RETURN(writer,
                        BundleWriter::Create(PosixFileSystem(), job.bundle));
  Started started{.id = ++last_id_, .core_dump = Fd()};
  if (job.expect_core) {
    const std::string path = writer.folder() + "/core";
    started.core_dump =
        Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (started.core_dump.get() < 0) {
      return SystemError(errno, fmt::format("cannot create {:?}", path));
    }
  }
  Running& running = *(saves_[started.id] = std::make_unique<Running>());
  // shared_ptr: std::function wants to be copied.
  auto bundle = std::make_shared<BundleWriter>(std::move(writer));
  running.thread = std::thread([this, &source, &running, id = started.id,
                                bundle = std::move(bundle),
                                job = std::move(job), done = std::move(done)] {
    const SaveEnd end = Save(source, *bundle, job, running.core);
    loop_.Post([this, id, end, done] {
      saves_.at(id)->thread.join();
      saves_.erase(id);
      done(id, end);
    });
  });
  return started;
}

SaveEnd Saver::Save(PtSource& source, BundleWriter& bundle, const SaveJob& job,
                    CoreCopy& core) const {
  SaveEnd end;
  const auto since_us = [&] {
    return (clock_.MonotonicNs() - job.triggered_ns) / 1000;
  };
  const auto run = [&]() -> Status {
    CLEW_ASSIGN_OR_RETURN(report, source.Save(job.order, bundle, [&] {
      if (end.first_byte_us == 0) {
        end.first_byte_us = since_us();
      }
    }));
    end.report = report;
    CLEW_RETURN_IF_ERROR(AddCore(bundle, job, core, &end.core_cut));
    ManifestEdits edits;
    edits.trigger = job.order.trigger;
    CLEW_RETURN_IF_ERROR(
        EditManifest(PosixFileSystem(), bundle.folder(), edits));
    return bundle.Publish();
  };
  end.status = run();
  end.saved_us = since_us();
  return end;
}

Status Saver::AddCore(BundleWriter& bundle, const SaveJob& job, CoreCopy& core,
                      bool* core_cut) {
  if (!job.expect_core) {
    return {};
  }
  if (core.Wait(job.core_ms_max)) {
    return bundle.Sync("core");
  }
  *core_cut = true;
  return bundle.files().RemoveAll(bundle.folder() + "/core");
}

bool Saver::CoreCopy::Wait(uint64_t wait_ms) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                  [&] { return whole_.has_value(); });
  return whole_.value_or(false);
}

void Saver::CoreCopy::End(bool whole) {
  const std::scoped_lock lock(mutex_);
  if (!whole_) {
    whole_ = whole;
    ended_.notify_all();
  }
}

void Saver::CoreEnded(Id id, bool whole) {
  const auto running = saves_.find(id);
  if (running != saves_.end()) {
    running->second->core.End(whole);
  }
}

}  // namespace clew::daemon
