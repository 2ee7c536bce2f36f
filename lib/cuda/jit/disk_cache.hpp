#ifndef COACCEL_CUDA_JIT_DISK_CACHE_HPP
#define COACCEL_CUDA_JIT_DISK_CACHE_HPP

#include "jit/image.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace coaccel::cuda {

/// Compiled kernels in a folder that any number of processes share.
///
/// A file holds the whole key it was made for. Whatever is wrong with a file or with the folder only means that
/// nothing is found, or nothing kept.
class disk_cache {
public:
    /// Without a folder it finds and keeps nothing.
    disk_cache(std::string folder, std::uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

    /// That of the environment; empty when there is none.
    static std::string default_folder();

    std::optional<jit::compiled_code> find(const std::string& key) const;

    /// Makes room by removing the files that were not used for longest. False: not kept.
    bool store(const std::string& key, const jit::compiled_code& code) const;

    /// The file for a key.
    std::string file_of(const std::string& key) const;

private:
    void make_room(std::uint64_t bytes) const;

    std::string folder_;
    std::uint64_t limit_;
};

} // namespace coaccel::cuda

#endif
