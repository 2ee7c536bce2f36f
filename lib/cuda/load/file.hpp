#ifndef COACCEL_CUDA_LOAD_FILE_HPP
#define COACCEL_CUDA_LOAD_FILE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace coaccel::cuda {

/// Owns the descriptor of an open file.
class open_file {
public:
    explicit open_file(int descriptor) noexcept : descriptor_(descriptor) {}
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    ~open_file()
    {
        if (descriptor_ >= 0)
            (void)::close(descriptor_);
    }

    explicit operator bool() const noexcept { return descriptor_ >= 0; }
    int get() const noexcept { return descriptor_; }
    bool close() noexcept { return ::close(std::exchange(descriptor_, -1)) == 0; }

private:
    int descriptor_;
};

/// All there is to read; none when reading fails, or when it is more than that.
std::optional<std::string> read_all(const open_file& f, std::uint64_t limit);

/// Changes when a file is replaced by another one. Empty without a file.
std::string file_stamp(const std::string& path);

} // namespace coaccel::cuda

#endif
