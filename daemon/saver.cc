#include "daemon/saver.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "common/check.h"
#include "recorder/manifest_edit.h"

namespace clew::daemon {

Saver::~Saver() {
  if (thread_.joinable()) {
    CoreEnded(false);
    thread_.join();
  }
}

Result<Fd> Saver::Start(PtSource& source, SaveJob job,
                        std::function<void(const SaveEnd&)> done) {
  CLEW_CHECK(!busy(), "two bundles are saved at once");
  CLEW_ASSIGN_OR_RETURN(
      writer, recorder::BundleWriter::Create(PosixFileSystem(), job.bundle));
  Fd core;
  if (job.expect_core) {
    const std::string path = writer.folder() + "/core";
    core =
        Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (core.get() < 0) {
      return SystemError(errno, fmt::format("cannot create {:?}", path));
    }
  }
  core_whole_.reset();
  // shared_ptr: std::function wants to be copied.
  auto bundle = std::make_shared<recorder::BundleWriter>(std::move(writer));
  thread_ = std::thread([this, &source, bundle = std::move(bundle),
                         job = std::move(job), done = std::move(done)] {
    const SaveEnd end = Save(source, *bundle, job);
    loop_.Post([this, end, done] {
      thread_.join();
      done(end);
    });
  });
  return core;
}

SaveEnd Saver::Save(PtSource& source, recorder::BundleWriter& bundle,
                    const SaveJob& job) {
  SaveEnd end;
  const auto since_us = [&] {
    return (clock_.MonotonicNs() - job.triggered_ns) / 1000;
  };
  const auto run = [&]() -> Status {
    CLEW_RETURN_IF_ERROR(source.Save(job.order, bundle, [&] {
      if (end.first_byte_us == 0) {
        end.first_byte_us = since_us();
      }
    }));
    CLEW_RETURN_IF_ERROR(AddCore(bundle, job, &end.core_cut));
    recorder::ManifestEdits edits;
    edits.trigger = job.order.trigger;
    CLEW_RETURN_IF_ERROR(
        recorder::EditManifest(PosixFileSystem(), bundle.folder(), edits));
    return bundle.Publish();
  };
  end.status = run();
  end.saved_us = since_us();
  return end;
}

Status Saver::AddCore(recorder::BundleWriter& bundle, const SaveJob& job,
                      bool* core_cut) {
  if (!job.expect_core) {
    return {};
  }
  if (WaitForCore(job.core_ms_max)) {
    return bundle.Sync("core");
  }
  *core_cut = true;
  return bundle.files().RemoveAll(bundle.folder() + "/core");
}

bool Saver::WaitForCore(uint64_t wait_ms) {
  std::unique_lock lock(mutex_);
  core_ended_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                       [&] { return core_whole_.has_value(); });
  return core_whole_.value_or(false);
}

void Saver::CoreEnded(bool whole) {
  const std::scoped_lock lock(mutex_);
  if (!core_whole_) {
    core_whole_ = whole;
    core_ended_.notify_all();
  }
}

}  // namespace clew::daemon
