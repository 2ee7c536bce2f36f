#ifndef COACCEL_SERVER_REPOSITORY_REPOSITORY_STATE_HPP
#define COACCEL_SERVER_REPOSITORY_REPOSITORY_STATE_HPP

#include "server/repository/model_scan.hpp"

#include <coaccel/core/config.hpp>
#include <coaccel/server/server_options.hpp>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// Something to do with one version of a model. Its end is told to the repository_state.
struct repository_action {
    /// What to do.
    enum class kind : std::uint8_t {
        load,   ///< Load the version beside the others.
        reload, ///< Load the new content of the file and let it replace the old one.
        unload, ///< Let its requests end and free it.
    };

    kind what = kind::load;    ///< What to do.
    std::string model;         ///< The model.
    std::uint64_t version = 0; ///< The version.

    auto operator<=>(const repository_action&) const = default;
};

/// What a version of a model does.
enum class version_phase : std::uint8_t {
    idle,      ///< Not loaded, or its load has failed.
    loading,   ///< Being loaded.
    ready,     ///< Loaded.
    reloading, ///< Loaded, and a new content of its file is being loaded.
    unloading, ///< Being freed.
};

/// A line of the index of the repository.
struct version_report {
    std::string model;                         ///< The model.
    std::uint64_t version = 0;                 ///< The version.
    version_phase phase = version_phase::idle; ///< What it does.
    std::string reason;                        ///< Why it is not as the file wants it; empty: no reason.

    bool operator==(const version_report&) const = default;
};

/// Why a version could not be loaded.
struct version_problem {
    std::uint64_t version = 0; ///< The version.
    std::string text;          ///< The reason.

    bool operator==(const version_problem&) const = default;
};

/// Decides which versions of which models are loaded, from scans of a model folder and the wishes of clients.
///
/// - A file is loaded when two scans after one another have found it the same: it may be in the middle of being
/// written.
/// - A version that the policy no longer wants is unloaded when those that it wants are loaded, or have failed and one
///   of them is loaded. Thus a model is served without a gap, and a bad file leaves the old version in place.
/// - A content that failed to load is tried again only when the file changes, or by hand.
/// - Each version has at most one action at a time.
/// - If the folder cannot be read, everything stays as it is.
///
/// A value without clock, files or threads.
class COACCEL_DECL repository_state {
public:
    using actions = std::vector<repository_action>;

    /// Whether files must keep still before they are loaded.
    enum class settling : std::uint8_t {
        needed, ///< For scans at intervals.
        assumed ///< For the first scan, and for scans that a client has asked for.
    };

    /// The policy of each model.
    explicit repository_state(version_policy others = {}, std::map<std::string, version_policy, std::less<>> own = {});

    /// A scan has ended.
    actions scanned(const model_scan& scan, settling how = settling::needed);
    /// The content that an action to load or reload is for.
    file_identity target(std::string_view model, std::uint64_t version) const;
    /// An action to load or reload has ended; `problem` is empty if it succeeded.
    actions load_ended(std::string_view model, std::uint64_t version, std::string problem = {});
    /// An action to unload has ended. It cannot fail.
    actions unload_ended(std::string_view model, std::uint64_t version);
    /// The version `bad` has failed too often in service, and `good` answers requests in its place, perhaps without a
    /// file or against the policy. They are the same if the earlier content of a file has come back. The bad content
    /// counts as one that could not be loaded.
    actions rolled_back(std::string_view model, std::uint64_t bad, std::uint64_t good, std::string problem);

    /// A client wants the model loaded: also what has failed before, and without waiting for files to keep still. Call
    /// it after a scan. Empty: the folder has no such model.
    std::optional<actions> load(std::string_view model);
    /// A client wants the model unloaded, until it is loaded by hand or disappears from the folder. Empty: there is no
    /// such model.
    std::optional<actions> unload(std::string_view model);

    /// The problems of the last scan that the scan before it did not have.
    const std::vector<std::string>& new_problems() const noexcept { return new_problems_; }
    /// Whether the last scan could read the folder. True before the first.
    bool readable() const noexcept { return readable_; }
    /// All versions that exist in the folder or are loaded.
    std::vector<version_report> index() const;
    /// Of a version that the policy wants, whether or not an earlier content of it is served. Empty: there is none.
    std::optional<version_problem> problem_of(std::string_view model) const;
    /// Whether its folder has a version that is to be loaded.
    bool has_version(std::string_view model) const;
    /// False while the policy wants a version that is neither loaded nor has failed.
    bool settled() const;

    auto operator<=>(const repository_state& other) const { return models_ <=> other.models_; }
    bool operator==(const repository_state& other) const { return models_ == other.models_; }

private:
    struct version_state {
        version_phase phase = version_phase::idle;
        std::optional<file_identity> seen;   ///< By the last scan; empty: the file is gone.
        bool still = false;                  ///< Whether the scan before it has seen the same.
        std::optional<file_identity> loaded; ///< The content that answers requests.
        std::optional<file_identity> target; ///< The content that is being loaded.
        std::optional<file_identity> failed; ///< The content that could not be loaded.
        std::string problem{};               ///< Why it failed.

        bool can_start() const { return seen && still && seen != failed && seen != loaded; }
        bool may_start() const { return seen && seen != failed && seen != loaded; }
        auto operator<=>(const version_state&) const = default;
    };
    struct model_state {
        std::map<std::uint64_t, version_state> versions;
        bool unloaded_by_hand = false;

        auto operator<=>(const model_state&) const = default;
    };
    using model_map = std::map<std::string, model_state, std::less<>>;

    const version_policy& policy(std::string_view model) const noexcept;
    std::set<std::uint64_t> wanted(std::string_view name, const model_state& m) const;
    void see(model_state& m, const scanned_model& scan, settling how);
    void decide(model_map::iterator m, actions& made);
    void load_older(model_map::iterator m, const std::set<std::uint64_t>& want, actions& made);
    static void forget_gone(model_state& m);

    version_policy others_;
    std::map<std::string, version_policy, std::less<>> own_;
    model_map models_;
    std::vector<std::string> problems_; ///< Of the last scan, sorted.
    std::vector<std::string> new_problems_;
    bool readable_ = true;
};

} // namespace coaccel::server

#endif
