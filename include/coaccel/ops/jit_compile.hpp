#ifndef COACCEL_OPS_JIT_COMPILE_HPP
#define COACCEL_OPS_JIT_COMPILE_HPP

#include <coaccel/ops/jit_host_function.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coaccel::jit {

/// A header in memory, found by #include of its name.
struct header {
    std::string name;
    std::string text;

    friend bool operator==(const header&, const header&) = default;
};

/// Whether compiled kernels are kept on disk.
enum class disk_caching : std::uint8_t { on, off };

/// What to compile, and how. Each setter returns the object, so that calls can be chained.
class COACCEL_DECL compile_options {
public:
    static constexpr std::uint64_t default_cache_limit = std::uint64_t(1) << 30;

    // Not an aggregate: g++ 12 destroys temporaries of such twice inside a co_await expression.
    compile_options();
    explicit compile_options(std::string name);
    compile_options(const compile_options&);
    compile_options(compile_options&&) noexcept;
    compile_options& operator=(const compile_options&);
    compile_options& operator=(compile_options&&) noexcept;
    ~compile_options();

    /// The kernel: the name of an extern "C" function, or a C++ expression such as "ns::scale<float>". Required.
    compile_options& name(std::string expression);
    const std::string& name() const noexcept { return name_; }

    /// One more option of NVRTC's, such as "--use_fast_math". Unless told otherwise it is C++17.
    compile_options& option(std::string text);
    const std::vector<std::string>& options() const noexcept { return options_; }

    /// One more folder for #include. Those of the CUDA toolkit and of CCCL come last by themselves.
    compile_options& include_folder(std::string path);
    const std::vector<std::string>& include_folders() const noexcept { return include_folders_; }

    compile_options& add_header(std::string name, std::string text);
    const std::vector<header>& headers() const noexcept { return headers_; }

    /// Such as 90 for sm_90; 0: that of the device.
    compile_options& architecture(int value);
    int architecture() const noexcept { return architecture_; }

    compile_options& cache(disk_caching value);
    disk_caching cache() const noexcept { return cache_; }

    /// Where compiled kernels are kept. Without it: $COACCEL_CACHE_DIR, else coaccel/jit in $XDG_CACHE_HOME or in
    /// ~/.cache.
    compile_options& cache_folder(std::string path);
    const std::string& cache_folder() const noexcept { return cache_folder_; }

    /// The most bytes the folder may hold; the files that were not used for longest go first.
    compile_options& cache_limit(std::uint64_t bytes);
    std::uint64_t cache_limit() const noexcept { return cache_limit_; }

    /// A function, or a lambda without captures, that stands in for the kernel on the host backend. It takes the shape
    /// of the launch, then what the kernel takes, and does the work of the whole grid in one call.
    template <class Function>
    compile_options& host(Function f)
    {
        return host_as(make_host_function(+f));
    }
    const host_function& host() const noexcept { return host_; }

private:
    compile_options& host_as(const host_function& f);

    std::string name_;
    std::vector<std::string> options_;
    std::vector<std::string> include_folders_;
    std::vector<header> headers_;
    std::string cache_folder_;
    std::uint64_t cache_limit_ = default_cache_limit;
    host_function host_;
    int architecture_ = 0;
    disk_caching cache_ = disk_caching::on;
};

} // namespace coaccel::jit

#endif
