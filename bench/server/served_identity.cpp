#include "server/served_identity.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <stdlib.h>
#include <vector>

namespace coaccel::bench {
namespace {

constexpr std::uint32_t row_values = 16;

void save_identity(const std::filesystem::path& folder)
{
    plan_set_builder set("identity");
    for (const std::uint32_t rows : {1u, 8u, 64u}) {
        auto& b = set.plan("identity" + std::to_string(rows));
        const auto x = b.input<float>(batch_of(rows, {{row_values}}), "x");
        const auto y = b.output<float>(batch_of(rows, {{row_values}}), "y");
        b.add(memory::copy<float>{.src = x, .dst = y});
    }
    std::filesystem::create_directories(folder / "identity" / "1");
    set.finish().value().save((folder / "identity" / "1" / "model.plan").string()).value();
}

std::string with_header(const std::string& body, const std::string& fields)
{
    return "POST /v2/models/identity/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body;
}

} // namespace

served_identity::served_identity(const device_options& device)
{
    std::string name = (std::filesystem::temp_directory_path() / "coaccel-bench-XXXXXX").string();
    if (!::mkdtemp(name.data()))
        throw std::runtime_error("no folder for the model");
    folder_ = name;
    save_identity(folder_);
    metrics_ = std::make_unique<telemetry::registry>(thread_.io.get_executor());
    server::server_options options;
    options.port = 0;
    options.model_folder = folder_.string();
    options.devices = {device};
    options.poll_interval = {};
    options.io_threads = 1;
    server_ =
        server::server::async_create(thread_.io.get_executor(), options, *metrics_, boost::asio::use_future).get();
}

served_identity::~served_identity()
{
    server_.async_shutdown(shutdown::drain, boost::asio::use_future).get();
    metrics_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::string served_identity::binary_request()
{
    const std::string json = "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,16],\"datatype\":\"FP32\",\"parameters\":{"
                             "\"binary_data_size\":64}}],\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":"
                             "true}}]}";
    std::vector<float> values;
    for (std::uint32_t i = 0; i < row_values; ++i)
        values.push_back(static_cast<float>(i) * 0.37f);
    const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return with_header(json + data, "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n");
}

std::string served_identity::json_request()
{
    std::string data;
    for (std::uint32_t i = 0; i < row_values; ++i)
        data += (i > 0 ? "," : "") + std::to_string(static_cast<float>(i) * 0.37f);
    return with_header("{\"inputs\":[{\"name\":\"x\",\"shape\":[1,16],\"datatype\":\"FP32\",\"data\":[" + data + "]}]}",
                       "Content-Type: application/json\r\n");
}

} // namespace coaccel::bench
