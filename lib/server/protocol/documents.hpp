#ifndef COACCEL_SERVER_PROTOCOL_DOCUMENTS_HPP
#define COACCEL_SERVER_PROTOCOL_DOCUMENTS_HPP

#include "server/protocol/signature.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The JSON documents of the protocol other than requests and replies of inferences. Exceptions: std::bad_alloc.
namespace coaccel::server {

/// `{"error": "..."}`.
std::string error_document(std::string_view message);

/// The name and version of the server, and the extensions of the protocol that it has.
std::string server_document();

/// Versions of a model, and the inputs and outputs of one of them.
std::string model_document(const model_signature& model, std::span<const std::string> versions);

/// The same as a Triton server describes its models.
std::string config_document(const model_signature& model);

/// How often something happened, and how long all of them took together.
struct duration_total {
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
};

/// What a version of a model has done.
struct model_statistics {
    std::string model;
    std::string version;
    std::uint64_t last_inference_ms = 0; ///< Since 1970; 0: none.
    std::uint64_t inferences = 0;        ///< Rows of requests that succeeded.
    std::uint64_t executions = 0;        ///< Batches.
    duration_total success{};
    duration_total fail{};
    duration_total queue{};
    duration_total compute_input{};
    duration_total compute_infer{};
    duration_total compute_output{};
};

std::string statistics_document(std::span<const model_statistics> all);

/// A version of a model in the folder.
struct index_entry {
    std::string model;
    std::string version;
    std::string state;  ///< "READY", "LOADING", "UNLOADING" or "UNAVAILABLE".
    std::string reason; ///< Why it is not ready.
};

std::string index_document(std::span<const index_entry> all);

} // namespace coaccel::server

#endif
