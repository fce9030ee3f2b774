// What is of all hosts: groups of failures, and how hosts do.

#include <utility>

#include "common/bytes.h"
#include "common/text/hex.h"
#include "transfer/client.h"
#include "transfer/client_connection.h"

namespace clew::transfer {
namespace {

RemoteGroup ToGroup(const pb::Group& from) {
  return {.signature = from.signature(),
          .title = from.title(),
          .program = from.program(),
          .bundles = from.bundles(),
          .hosts = from.hosts(),
          .first_seen_s = from.first_seen_s(),
          .last_seen_s = from.last_seen_s(),
          .state = from.state(),
          .why = from.why(),
          .representative = ToHex(AsBytes(from.representative())),
          .first_version = from.first_version(),
          .last_version = from.last_version(),
          .resolved = from.resolved(),
          .resolved_in = from.resolved_in(),
          .reopened_in = from.reopened_in(),
          .note = from.note(),
          .changed_by = from.changed_by(),
          .changed_at_s = from.changed_at_s()};
}

pb::ChangeGroupRequest::Change ToChange(std::optional<bool> resolved) {
  if (!resolved) {
    return pb::ChangeGroupRequest::CHANGE_NONE;
  }
  return *resolved ? pb::ChangeGroupRequest::CHANGE_RESOLVE
                   : pb::ChangeGroupRequest::CHANGE_REOPEN;
}

}  // namespace

Result<RemotePage<RemoteGroup>> Client::ListGroups(
    const RemoteGroupQuery& query) {
  pb::ListGroupsRequest request;
  request.set_offset(query.offset);
  request.set_limit(query.limit);
  request.set_text(query.text);
  request.set_program(query.program);
  request.set_reopened(query.reopened);
  request.set_state(query.state);
  request.set_version(query.version);
  request.set_failure(query.failure);
  request.set_host(query.host);
  request.set_unit(query.unit);
  request.set_since_s(query.since_s);
  if (query.resolved) {
    request.set_resolved(*query.resolved);
  }
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::ListGroups, request));
  RemotePage<RemoteGroup> page{.rows = {}, .total = reply.total()};
  for (const pb::Group& group : reply.groups()) {
    page.rows.push_back(ToGroup(group));
  }
  return page;
}

Result<RemoteGroupDetails> Client::GetGroup(std::string_view prefix) {
  pb::GetGroupRequest request;
  request.set_id(std::string(prefix));
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::GetGroup, request));
  RemoteGroupDetails details{.group = ToGroup(reply.group()), .versions = {}};
  for (const pb::GetGroupReply::Version& from : reply.versions()) {
    details.versions.push_back({.version = from.version(),
                                .first_seen_s = from.first_seen_s(),
                                .last_seen_s = from.last_seen_s()});
  }
  return details;
}

Result<RemoteGroup> Client::ChangeGroup(std::string_view prefix,
                                        const RemoteGroupChange& change) {
  pb::ChangeGroupRequest request;
  request.set_id(std::string(prefix));
  request.set_change(ToChange(change.resolved));
  request.set_version(change.version);
  if (change.note) {
    request.set_note(*change.note);
  }
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::ChangeGroup, request));
  return ToGroup(reply.group());
}

Result<RemotePage<RemoteHost>> Client::ListHosts(const RemoteHostQuery& query) {
  pb::ListHostsRequest request;
  request.set_offset(query.offset);
  request.set_limit(query.limit);
  request.set_text(query.text);
  request.set_health(query.health);
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::ListHosts, request));
  RemotePage<RemoteHost> page{.rows = {}, .total = reply.total()};
  for (const pb::HostStatus& from : reply.hosts()) {
    page.rows.push_back({.host = from.host(),
                         .seen_at_s = from.seen_at_s(),
                         .health = from.health(),
                         .report = FromProto(from.report())});
  }
  return page;
}

}  // namespace clew::transfer
