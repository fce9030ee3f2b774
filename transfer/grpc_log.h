#ifndef CLEW_TRANSFER_GRPC_LOG_H_
#define CLEW_TRANSFER_GRPC_LOG_H_

namespace clew::transfer {

// gRPC and protobuf write to stderr whatever strangers send; what matters of it
// is in the status of calls. Silences both, unless GRPC_VERBOSITY is set. Twice
// is once.
void SilenceGrpc();

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_GRPC_LOG_H_
