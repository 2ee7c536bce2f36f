#ifndef COACCEL_CUDA_JIT_DISK_CACHE_HPP
#define COACCEL_CUDA_JIT_DISK_CACHE_HPP

#include "jit/image.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace coaccel::cuda {

/// Compiled kernels in a folder shared by any number of processes.
///
/// A file contains the whole key it was made for. With a bad file or folder the cache just finds or stores nothing.
class disk_cache {
public:
    /// An empty folder disables the cache.
    disk_cache(std::string folder, std::uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

    /// The folder named by the environment; empty if there is none.
    static std::string default_folder();

    std::optional<jit::compiled_code> find(const std::string& key) const;

    /// Removes the least recently used files to stay within the limit. Returns false if the code was not stored.
    bool store(const std::string& key, const jit::compiled_code& code) const;

    /// The path of the file for a key.
    std::string file_of(const std::string& key) const;

private:
    void make_room(std::uint64_t bytes) const;

    std::string folder_;
    std::uint64_t limit_;
};

} // namespace coaccel::cuda

#endif
