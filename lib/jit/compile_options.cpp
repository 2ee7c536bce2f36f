#include <coaccel/ops/jit/compile.hpp>

#include <utility>

namespace coaccel::jit {

compile_options::compile_options() {}
compile_options::compile_options(std::string name) : name_(std::move(name)) {}
compile_options::compile_options(const compile_options&) = default;
compile_options::compile_options(compile_options&&) noexcept = default;
compile_options& compile_options::operator=(const compile_options&) = default;
compile_options& compile_options::operator=(compile_options&&) noexcept = default;
compile_options::~compile_options() = default;

compile_options& compile_options::name(std::string expression)
{
    name_ = std::move(expression);
    return *this;
}

compile_options& compile_options::option(std::string text)
{
    options_.push_back(std::move(text));
    return *this;
}

compile_options& compile_options::include_folder(std::string path)
{
    include_folders_.push_back(std::move(path));
    return *this;
}

compile_options& compile_options::add_header(std::string name, std::string text)
{
    headers_.push_back({std::move(name), std::move(text)});
    return *this;
}

compile_options& compile_options::architecture(int value)
{
    architecture_ = value;
    return *this;
}

compile_options& compile_options::cache(disk_caching value)
{
    cache_ = value;
    return *this;
}

compile_options& compile_options::cache_folder(std::string path)
{
    cache_folder_ = std::move(path);
    return *this;
}

compile_options& compile_options::cache_limit(std::uint64_t bytes)
{
    cache_limit_ = bytes;
    return *this;
}

compile_options& compile_options::host_as(const host_function& f)
{
    host_ = f;
    return *this;
}

} // namespace coaccel::jit
