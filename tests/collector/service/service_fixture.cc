#include "tests/collector/service/service_fixture.h"

#include <utility>

#include "common/check.h"
#include "proto/bundle.pb.h"

namespace clew::collector {
namespace {

template <class T>
T Opened(Result<T> result) {
  CLEW_CHECK(result.has_value(), "{}", result.error().message);
  return *std::move(result);
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ServiceFixture::ServiceFixture() {
  options.disk_free_bytes = [this] { return free_bytes; };
  options.wall_s = [this] { return wall_s; };
  options.steady_s = [this] { return steady_s; };
  options.committed = [this] { ++committed; };
}

void ServiceFixture::Open() {
  service_.reset();
  usage_.reset();
  schedules_.reset();
  catalogue_.reset();
  store_.reset();
  BundleStore::Options store_options =
      StoreOptions(folder_ / "data", &steady_s);
  store_options.budget_bytes = budget_bytes;
  store_ = Opened(BundleStore::Open(PosixFileSystem(), store_options));
  catalogue_ = Opened(Catalogue::Open(folder_ / "data/catalogue.sqlite"));
  schedules_ = Opened(
      ScheduleStore::Open(PosixFileSystem(), folder_ / "data/schedules"));
  usage_ = Opened(DailyUsage::Open(PosixFileSystem(),
                                   {.path = folder_ / "data/usage",
                                    .limit_bytes = host_bytes_per_day,
                                    .now_s = [this] { return wall_s; }}));
  service_ = std::make_unique<Service>(options, *store_, *catalogue_,
                                       *schedules_, *usage_);
}

std::string ManifestBytes(const std::string& unit) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_source(pb::Manifest::SOURCE_QEMU);
  manifest.add_command("./server");
  manifest.add_command("--fast");
  manifest.set_recorded_at_s(1'600'000'000);
  manifest.mutable_failure()->set_kind(pb::Failure::KIND_SIGNAL);
  manifest.mutable_failure()->set_signal(6);
  manifest.mutable_trigger()->set_unit(unit);
  manifest.mutable_sufficiency()->set_score(77);
  return manifest.SerializeAsString();
}

Sample ServiceSample(const std::string& own, const std::string& shared) {
  return Sample({{"manifest.pb", ManifestBytes("web.service")},
                 {"perf.data", own},
                 {"inputs.pb", ""},
                 {"images/c0ffee/libstdc++.so.6", shared}});
}

pb::BeginRequest BeginOf(const FileList& list) {
  pb::BeginRequest request;
  request.set_files(TextOf(list.Encode()));
  return request;
}

pb::PutPart PartOf(const ChunkRef& chunk, const std::string& bytes,
                   uint64_t offset, size_t size) {
  pb::PutPart part;
  part.set_chunk(TextOf(chunk.id.bytes()));
  part.set_offset(offset);
  part.set_data(bytes.substr(offset, size));
  return part;
}

Status PutMissing(Service& service, const Caller& caller, const Sample& sample,
                  const pb::BeginReply& begun, size_t part_bytes) {
  Service::PutSession session(service, caller);
  for (const pb::MissingChunk& missing : begun.missing()) {
    const ChunkId id(std::as_bytes(std::span(missing.chunk())));
    const std::string& bytes = sample.chunks.at(id);
    const ChunkRef chunk{.id = id, .size_bytes = bytes.size()};
    bool acknowledged = false;
    for (uint64_t offset = missing.received_bytes(); offset < bytes.size();
         offset += part_bytes) {
      CLEW_ASSIGN_OR_RETURN(
          ack, session.Put(PartOf(chunk, bytes, offset, part_bytes)));
      acknowledged = ack.has_value();
    }
    CLEW_CHECK(acknowledged, "chunk {} is whole, and no word", id.hex());
  }
  return {};
}

Status Upload(Service& service, const Caller& caller, const Sample& sample) {
  CLEW_ASSIGN_OR_RETURN(begun, service.Begin(caller, BeginOf(sample.list)));
  CLEW_RETURN_IF_ERROR(PutMissing(service, caller, sample, begun));
  if (begun.stored()) {
    return {};
  }
  pb::CommitRequest commit;
  commit.set_bundle(begun.bundle());
  CLEW_ASSIGN_OR_RETURN(committed, service.Commit(caller, commit));
  CLEW_CHECK(committed.missing_size() == 0, "chunks are missing");
  return {};
}

Result<Files> Download(Service& service, const Caller& caller,
                       const std::string& prefix, uint32_t first_chunk) {
  pb::GetRequest request;
  request.set_id(prefix);
  request.set_first_chunk(first_chunk);
  CLEW_ASSIGN_OR_RETURN(session, service.Get(caller, request));
  pb::GetPart part;
  std::string head;
  std::string data;
  std::string schedule;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(more, session.Next(&part));
    if (!more) {
      break;
    }
    head += part.files();
    data += part.data();
    schedule += part.schedule();
  }
  CLEW_ASSIGN_OR_RETURN(list, FileList::Parse(std::as_bytes(std::span(head))));
  Files files;
  size_t offset = 0;
  for (const FileEntry& file : list.files()) {
    files[file.path] =
        first_chunk == 0 ? data.substr(offset, file.size_bytes) : "";
    offset += file.size_bytes;
  }
  if (!schedule.empty()) {
    files["schedule.pb"] = schedule;
  }
  files[""] = data;
  return files;
}

}  // namespace clew::collector
