#ifndef COACCEL_SERVER_REPOSITORY_MODEL_SCAN_HPP
#define COACCEL_SERVER_REPOSITORY_MODEL_SCAN_HPP

#include <coaccel/core/config.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace coaccel::server {

/// What tells two contents of a file apart without reading it.
struct file_identity {
    std::uint64_t size = 0;  ///< In bytes.
    std::int64_t mtime = 0;  ///< The last change, in nanoseconds since 1970.
    std::uint64_t inode = 0; ///< Another one if the file was replaced by renaming.

    auto operator<=>(const file_identity&) const = default;
};

/// The files of a model.
struct scanned_model {
    /// Whether all of it could be read. If not, versions that are missing here may exist.
    bool readable = true;
    std::map<std::uint64_t, file_identity> versions{}; ///< By number. There may be none.

    bool operator==(const scanned_model&) const = default;
};

/// A model folder at one moment: NAME/VERSION/model.plan.
struct model_scan {
    /// Whether the folder itself could be read. If not, nothing is known about the models.
    bool readable = true;
    std::map<std::string, scanned_model> models{}; ///< By name.
    /// Entries that are no models or versions and why, and what could not be read; in a stable order.
    std::vector<std::string> problems{};

    bool operator==(const model_scan&) const = default;
};

/// Scans the folder. Names that begin with a dot are skipped, so that a file can be prepared under such a name.
/// Symbolic links are followed.
COACCEL_DECL model_scan scan_models(const std::string& folder);

/// The path of the file of a version.
COACCEL_DECL std::string model_path(const std::string& folder, const std::string& model, std::uint64_t version);

} // namespace coaccel::server

#endif
