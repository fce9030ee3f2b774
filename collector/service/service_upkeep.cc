// What engineers do to what is stored: Service::Delete and Check.

#include "collector/service/service.h"
#include "proto/collector.pb.h"

namespace clew::collector {
Status Service::MustBeEngineer(const Caller& caller, std::string_view what) {
  if (caller.engineer) {
    return {};
  }
  return Unsupported(
      "host {:?} may not {}; name it in 'engineers' of the collector's "
      "configuration",
      caller.host, what);
}

// By its whole id also what is not listed: a damaged list, or what an earlier
// attempt began. In the order of retention: what is listed is there. After a
// crash in between it is listed again.
Result<pb::DeleteReply> Service::Delete(const Caller& caller,
                                        const pb::DeleteRequest& request) {
  CLEW_RETURN_IF_ERROR(MustBeEngineer(caller, "delete bundles"));
  std::optional<BundleId> id = BundleId::Parse(request.id());
  if (!id) {
    CLEW_ASSIGN_OR_RETURN(found, Find(caller, request.id()));
    id = found;
  }
  CLEW_RETURN_IF_ERROR(store_.CheckRemovable());
  CLEW_RETURN_IF_ERROR(catalogue_.Remove(*id));
  CLEW_RETURN_IF_ERROR(store_.Remove(*id));
  CLEW_RETURN_IF_ERROR(schedules_.Remove(*id));
  Audit("deleted", caller, *id);
  pb::DeleteReply reply;
  reply.set_bundle(id->bytes().data(), id->bytes().size());
  return reply;
}

Result<pb::CheckReply> Service::Check(const Caller& caller,
                                      const pb::CheckRequest& request) {
  CLEW_RETURN_IF_ERROR(MustBeEngineer(caller, "check bundles"));
  CLEW_ASSIGN_OR_RETURN(id, Find(caller, request.id()));
  Audit("checked", caller, id);
  CLEW_ASSIGN_OR_RETURN(list, store_.ReadList(id));
  pb::CheckReply reply;
  reply.set_bundle(id.bytes().data(), id.bytes().size());
  uint64_t bytes_read = 0;
  for (const ChunkRef& chunk : list.Chunks()) {
    if (const Status scrubbed = store_.chunks().Scrub(chunk); !scrubbed) {
      reply.add_faults(scrubbed.error().message);
    }
    bytes_read += chunk.size_bytes;
  }
  reply.set_bytes_read(bytes_read);
  return reply;
}

}  // namespace clew::collector
