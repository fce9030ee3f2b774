// Groups of failures: what readers see of them, and how engineers mark them.

#include <string_view>
#include <utility>

#include "collector/catalogue/text.h"
#include "collector/service/id_prefix.h"
#include "collector/service/service.h"
#include "proto/collector.pb.h"

namespace clew::collector {
namespace {

constexpr uint32_t kGroupRowsMax = 500;
constexpr uint64_t kVersionsMax = 100;

void FillMark(const GroupMark& mark, pb::Group* out) {
  out->set_resolved(mark.resolved);
  out->set_resolved_in(mark.resolved_in);
  out->set_reopened_in(mark.reopened_in);
  out->set_note(mark.note);
  out->set_changed_by(mark.by);
  out->set_changed_at_s(mark.at_s);
}

void FillGroup(const GroupRow& row, pb::Group* out) {
  out->set_signature(row.signature);
  out->set_title(row.title);
  out->set_program(row.program);
  out->set_bundles(row.bundles);
  out->set_hosts(row.host_count);
  out->set_first_seen_s(row.first_seen_s);
  out->set_last_seen_s(row.last_seen_s);
  out->set_state(std::string(ToString(row.state)));
  out->set_why(row.why);
  if (row.representative) {
    const auto bytes = row.representative->bytes();
    out->set_representative(bytes.data(), bytes.size());
  }
  out->set_first_version(row.first_version);
  out->set_last_version(row.last_version);
  FillMark(row.mark, out);
}

Result<std::optional<BundleState>> StateOf(const std::string& name_untrusted) {
  const auto state = StateNamed(name_untrusted);
  if (!state && !name_untrusted.empty()) {
    return InvalidArgument("{:?} is no state of a bundle",
                           CleanName(name_untrusted));
  }
  return state;
}

Result<GroupQuery> QueryOf(const pb::ListGroupsRequest& request) {
  CLEW_ASSIGN_OR_RETURN(state, StateOf(request.state()));
  GroupQuery query{.offset = request.offset(),
                   .text = request.text(),
                   .reopened = request.reopened(),
                   .state = state,
                   .filter = {.host = request.host(),
                              .program = request.program(),
                              .version = request.version(),
                              .unit = request.unit(),
                              .failure = request.failure(),
                              .since_s = request.since_s()}};
  if (request.has_resolved()) {
    query.resolved = request.resolved();
  }
  return query;
}

// What would be changed or cut is refused: people shall read what was written.
Status CheckLine(std::string_view what, std::string_view text_untrusted,
                 size_t bytes_max) {
  if (text_untrusted.size() > bytes_max) {
    return InvalidArgument("the {} has {} bytes, at most {} are kept", what,
                           text_untrusted.size(), bytes_max);
  }
  const std::string clean = CleanLine(text_untrusted, bytes_max);
  if (clean != text_untrusted) {
    return InvalidArgument(
        "the {} {:?} has control characters or bytes that are no UTF-8; write "
        "it on one line",
        what, clean);
  }
  return {};
}

Result<std::optional<bool>> ResolvedOf(const pb::ChangeGroupRequest& request) {
  switch (request.change()) {
    case pb::ChangeGroupRequest::CHANGE_NONE:
      if (!request.has_note()) {
        return InvalidArgument("the call changes nothing of the group");
      }
      return std::nullopt;
    case pb::ChangeGroupRequest::CHANGE_RESOLVE:
      return true;
    case pb::ChangeGroupRequest::CHANGE_REOPEN:
      return false;
    default:
      return InvalidArgument("change is {}, wanted 0 to 2",
                             static_cast<int>(request.change()));
  }
}

Result<GroupChange> ChangeOf(const pb::ChangeGroupRequest& request) {
  CLEW_ASSIGN_OR_RETURN(resolved, ResolvedOf(request));
  if (!request.version().empty() && resolved != true) {
    return InvalidArgument(
        "a version is wanted where a group is resolved, and nowhere else");
  }
  CLEW_RETURN_IF_ERROR(CheckLine("version", request.version(), kNameBytesMax));
  CLEW_RETURN_IF_ERROR(CheckLine("note", request.note(), kNoteBytesMax));
  GroupChange change{.resolved = resolved, .version = request.version()};
  if (request.has_note()) {
    change.note = request.note();
  }
  return change;
}

}  // namespace

Result<GroupRow> Service::FindGroup(const std::string& prefix) const {
  CLEW_RETURN_IF_ERROR(CheckIdPrefix(prefix, "group", "clew group list"));
  CLEW_ASSIGN_OR_RETURN(present, catalogue_.PresentSignature(prefix));
  CLEW_ASSIGN_OR_RETURN(found, catalogue_.SignaturesWith(present, 2));
  if (found.size() > 1) {
    return InvalidArgument(
        "several groups have ids that begin with {}; give more digits", prefix);
  }
  if (!found.empty()) {
    CLEW_ASSIGN_OR_RETURN(row, catalogue_.Group(found[0]));
    if (row) {
      return *row;
    }
  }
  return InvalidArgument(
      "no group has an id that begins with {}; 'clew group list' prints those "
      "there are",
      prefix);
}

Result<pb::ListGroupsReply> Service::ListGroups(
    const Caller& caller, const pb::ListGroupsRequest& request) {
  CLEW_RETURN_IF_ERROR(MustReadAll(caller, "groups"));
  CLEW_ASSIGN_OR_RETURN(limit, RowsOfPage(request.limit(), kGroupRowsMax));
  CLEW_ASSIGN_OR_RETURN(query, QueryOf(request));
  query.limit = limit;
  CLEW_ASSIGN_OR_RETURN(page, catalogue_.Groups(query));
  pb::ListGroupsReply reply;
  for (const GroupRow& row : page.rows) {
    FillGroup(row, reply.add_groups());
  }
  reply.set_total(page.total);
  return reply;
}

Result<pb::GetGroupReply> Service::GetGroup(
    const Caller& caller, const pb::GetGroupRequest& request) {
  CLEW_RETURN_IF_ERROR(MustReadAll(caller, "groups"));
  CLEW_ASSIGN_OR_RETURN(row, FindGroup(request.id()));
  CLEW_ASSIGN_OR_RETURN(versions,
                        catalogue_.VersionsOf(row.signature, kVersionsMax));
  pb::GetGroupReply reply;
  FillGroup(row, reply.mutable_group());
  for (const VersionCount& version : versions) {
    pb::GetGroupReply::Version* out = reply.add_versions();
    out->set_version(version.version);
    out->set_first_seen_s(version.first_seen_s);
    out->set_last_seen_s(version.last_seen_s);
  }
  return reply;
}

Result<pb::ChangeGroupReply> Service::ChangeGroup(
    const Caller& caller, const pb::ChangeGroupRequest& request) {
  CLEW_RETURN_IF_ERROR(MustBeEngineer(caller, "change groups"));
  CLEW_ASSIGN_OR_RETURN(change, ChangeOf(request));
  CLEW_ASSIGN_OR_RETURN(row, FindGroup(request.id()));
  change.by = caller.host;
  change.at_s = options_.wall_s();
  CLEW_RETURN_IF_ERROR(catalogue_.Change(row.signature, change));
  if (change.resolved) {
    Audit({.what = *change.resolved ? "resolved" : "reopened",
           .caller = caller,
           .of = "group",
           .id = row.signature,
           .version = change.version});
  }
  if (change.note) {
    Audit({.what = "noted",
           .caller = caller,
           .of = "group",
           .id = row.signature});
  }
  CLEW_ASSIGN_OR_RETURN(changed, FindGroup(row.signature));
  pb::ChangeGroupReply reply;
  FillGroup(changed, reply.mutable_group());
  return reply;
}

}  // namespace clew::collector
