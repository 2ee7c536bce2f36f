#ifndef COACCEL_PLAN_FILE_PLAN_FILE_HPP
#define COACCEL_PLAN_FILE_PLAN_FILE_HPP

#include <coaccel/plan/plan_set_description.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// A file with a plan or a set of plans: a header, the description, and the contents of the constants and states.
namespace coaccel::detail {

/// Raised when files of the earlier version can no longer be read.
inline constexpr std::uint32_t plan_file_version = 1;

/// Contents start at a multiple of this, so that each one begins on a page of its own.
inline constexpr std::uint64_t content_alignment = 4096;

inline constexpr char plan_file_magic[8] = {'c', 'o', 'a', 'c', 'c', 'e', 'l', 'P'};

struct plan_file_header {
    char magic[8];
    std::uint32_t version;
    /// Zero.
    std::uint32_t reserved;
    /// The description follows the header.
    std::uint64_t description_bytes;
    std::uint64_t file_bytes;
    /// The hash of the description.
    content_id description;
};

static_assert(sizeof(plan_file_header) == 48);

constexpr std::uint64_t aligned_content(std::uint64_t bytes) noexcept
{
    return (bytes + content_alignment - 1) / content_alignment * content_alignment;
}

/// What a file is for. A file of one plan is one of a set of one, without what only a set has.
enum class plan_file_form : std::uint8_t { plan, set };

/// The parts of a file.
struct plan_file_parts {
    /// The header and the description.
    std::vector<std::byte> head;
    /// Each begins at the next multiple of content_alignment.
    std::vector<plan_content> contents;
};

/// Errors: errc::not_savable. The description is not empty.
COACCEL_DECL result<plan_file_parts> write_plan(const plan_description& plan);
COACCEL_DECL result<plan_file_parts> write_plan_set(const plan_set_description& set);

/// The untrusted bytes of a file.
struct plan_file_source {
    std::span<const std::byte> bytes;
    /// Keeps them.
    std::shared_ptr<const void> owner;
    content_check check = content_check::hash;
    /// Of the file, for messages.
    std::string name;
    /// The file, if the bytes are its mapping.
    const mapped_file* mapped = nullptr;
};

/// Errors: as plan_description::load.
COACCEL_DECL result<plan_description> read_plan(const plan_file_source& file);

/// Errors: as plan_set_description::load.
COACCEL_DECL result<plan_set_description> read_plan_set(const plan_file_source& file);

} // namespace coaccel::detail

#endif
