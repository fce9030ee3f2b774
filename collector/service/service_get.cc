// What clients fetch: Service::Get.

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "collector/service/id_prefix.h"
#include "collector/service/service.h"
#include "proto/collector.pb.h"

namespace clew::collector {
namespace {

// File by file, chunk by chunk.
std::vector<ChunkRef> InOrder(const FileList& list) {
  std::vector<ChunkRef> order;
  for (const FileEntry& file : list.files()) {
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      order.push_back(file.chunk(i));
    }
  }
  return order;
}

// The next part of `bytes`; moves `offset` on.
std::string TakePart(const std::vector<std::byte>& bytes, uint64_t part_bytes,
                     size_t* offset) {
  const size_t size = std::min<size_t>(part_bytes, bytes.size() - *offset);
  const std::span part = std::span(bytes).subspan(*offset, size);
  *offset += size;
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

}  // namespace

Result<bool> Service::MaySee(const Caller& caller, const BundleId& id) const {
  if (caller.reads_all) {
    return true;
  }
  CLEW_ASSIGN_OR_RETURN(row, catalogue_.Bundle(id));
  return row && row->host == caller.host;
}

// What the caller may not see is not there for it.
Result<BundleId> Service::Find(const Caller& caller,
                               const std::string& prefix) const {
  CLEW_RETURN_IF_ERROR(CheckIdPrefix(prefix, "bundle", "clew list"));
  CLEW_ASSIGN_OR_RETURN(ids, store_.WithPrefix(prefix));
  std::optional<BundleId> found;
  for (const BundleId& id : ids) {
    CLEW_ASSIGN_OR_RETURN(visible, MaySee(caller, id));
    if (visible && found) {
      return InvalidArgument(
          "several bundles have ids that begin with {}; give more digits",
          prefix);
    }
    if (visible) {
      found = id;
    }
  }
  if (!found) {
    return InvalidArgument(
        "no bundle that host {:?} may see has an id that begins with {}; 'clew "
        "list' prints those there are, and 'readers' of the collector's "
        "configuration names who sees all",
        caller.host, prefix);
  }
  return *found;
}

Result<Service::GetSession> Service::Get(const Caller& caller,
                                         const pb::GetRequest& request) {
  CLEW_ASSIGN_OR_RETURN(id, Find(caller, request.id()));
  store_.Learn(id);
  CLEW_ASSIGN_OR_RETURN(list, store_.ReadList(id));
  const size_t chunks = InOrder(list).size();
  if (request.first_chunk() > chunks) {
    return InvalidArgument("first_chunk is {}, the bundle has {} chunks",
                           request.first_chunk(), chunks);
  }
  CLEW_ASSIGN_OR_RETURN(schedule, schedules_.Read(id));
  CLEW_RETURN_IF_ERROR(store_.chunks().Hold(list.Chunks()));
  GetSession session(*this, std::move(list), request.first_chunk());
  if (schedule) {
    session.schedule_ = *std::move(schedule);
  }
  Audit("fetched", caller, id);
  return session;
}

Service::GetSession::GetSession(Service& service, FileList list,
                                size_t first_chunk)
    : service_(&service),
      list_(std::move(list)),
      held_(list_.Chunks()),
      order_(InOrder(list_)),
      next_chunk_(first_chunk) {}

Service::GetSession::GetSession(GetSession&& other) noexcept
    : service_(std::exchange(other.service_, nullptr)),
      list_(std::move(other.list_)),
      held_(std::move(other.held_)),
      order_(std::move(other.order_)),
      schedule_(std::move(other.schedule_)),
      head_sent_(other.head_sent_),
      next_chunk_(other.next_chunk_),
      chunk_offset_(other.chunk_offset_),
      bytes_(std::move(other.bytes_)),
      schedule_offset_(other.schedule_offset_) {}

Service::GetSession::~GetSession() {
  if (service_ != nullptr) {
    service_->store_.chunks().Release(held_);
  }
}

void Service::GetSession::Head(pb::GetPart* part) {
  const std::vector<std::byte> files = list_.Encode();
  part->set_files(files.data(), files.size());
  if (!schedule_.empty()) {
    const auto digest = transfer::Sha256Of(schedule_);
    part->set_schedule_bytes(schedule_.size());
    part->set_schedule_digest(digest.data(), digest.size());
  }
}

Result<bool> Service::GetSession::NextData(pb::GetPart* part) {
  if (chunk_offset_ == bytes_.size()) {
    if (next_chunk_ == order_.size()) {
      return false;
    }
    CLEW_ASSIGN_OR_RETURN(bytes,
                          service_->store_.chunks().Read(order_[next_chunk_]));
    bytes_ = std::move(bytes);
    chunk_offset_ = 0;
    ++next_chunk_;
  }
  part->set_data(
      TakePart(bytes_, service_->options_.part_bytes_max, &chunk_offset_));
  return true;
}

Result<bool> Service::GetSession::Next(pb::GetPart* part) {
  part->Clear();
  if (!head_sent_) {
    head_sent_ = true;
    Head(part);
    return true;
  }
  CLEW_ASSIGN_OR_RETURN(data, NextData(part));
  if (!data) {
    if (schedule_offset_ == schedule_.size()) {
      return false;
    }
    part->set_schedule(TakePart(schedule_, service_->options_.part_bytes_max,
                                &schedule_offset_));
  }
  service_->counts_.bytes_sent += part->data().size() + part->schedule().size();
  return true;
}

}  // namespace clew::collector
