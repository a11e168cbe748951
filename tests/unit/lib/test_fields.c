/* The tables of fields of all results: each member of the struct once, in order, as declared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sherd/sherd.h"

/* Bytes that the values of a type have; 0: any. */
static size_t size_of(sherd_field_type t)
{
    switch (t) {
    case SHERD_FIELD_BOOL: return sizeof(bool);
    case SHERD_FIELD_I32:
    case SHERD_FIELD_U32:
    case SHERD_FIELD_ENUM: return 4;
    case SHERD_FIELD_I64:
    case SHERD_FIELD_U64: return 8;
    case SHERD_FIELD_F64: return sizeof(double);
    case SHERD_FIELD_NAME: return sizeof(char *);
    default: return 0;
    }
}

static const struct {
    const char *name;
    const sherd_field *(*fields)(size_t *count);
    size_t size;
    bool owned; /* by the library: no member `size` */
} tables[] = {
    { "sherd_machine", sherd_machine_fields, sizeof(sherd_machine), false },
    { "sherd_data_info", sherd_data_info_fields, sizeof(sherd_data_info), false },
    { "sherd_predict_report", sherd_predict_report_fields, sizeof(sherd_predict_report), false },
    { "sherd_epoch", sherd_epoch_fields, sizeof(sherd_epoch), true },
    { "sherd_train_pass", sherd_train_pass_fields, sizeof(sherd_train_pass), true },
    { "sherd_train_update", sherd_train_update_fields, sizeof(sherd_train_update), true },
    { "sherd_train_report", sherd_train_report_fields, sizeof(sherd_train_report), false },
    { "sherd_train_gradients", sherd_train_gradients_fields, sizeof(sherd_train_gradients), false },
    { "sherd_train_allreduce", sherd_train_allreduce_fields, sizeof(sherd_train_allreduce), false },
    { "sherd_train_link", sherd_train_link_fields, sizeof(sherd_train_link), false },
    { "sherd_train_secure", sherd_train_secure_fields, sizeof(sherd_train_secure), false },
    { "sherd_train_exposure", sherd_train_exposure_fields, sizeof(sherd_train_exposure), false },
    { "sherd_checkpoints", sherd_checkpoints_fields, sizeof(sherd_checkpoints), false },
    { "sherd_audit_info", sherd_audit_info_fields, sizeof(sherd_audit_info), false },
    { "sherd_audit_finding", sherd_audit_finding_fields, sizeof(sherd_audit_finding), true },
    { "sherd_audit_scope", sherd_audit_scope_fields, sizeof(sherd_audit_scope), true },
    { "sherd_audit_figure", sherd_audit_figure_fields, sizeof(sherd_audit_figure), true },
    { "sherd_audit_control", sherd_audit_control_fields, sizeof(sherd_audit_control), true },
    { "sherd_audit_sketched", sherd_audit_sketched_fields, sizeof(sherd_audit_sketched), false },
    { "sherd_report", sherd_report_fields, sizeof(sherd_report), false },
    { "sherd_report_node", sherd_report_node_fields, sizeof(sherd_report_node), false },
    { "sherd_check", sherd_check_fields, sizeof(sherd_check), false },
    { "sherd_distance", sherd_distance_fields, sizeof(sherd_distance), false },
    { "sherd_certificate_info", sherd_certificate_info_fields, sizeof(sherd_certificate_info),
      false },
    { "sherd_certificate_matrix", sherd_certificate_matrix_fields, sizeof(sherd_certificate_matrix),
      false },
    { "sherd_certificate_node", sherd_certificate_node_fields, sizeof(sherd_certificate_node),
      false },
    { "sherd_meta_settings", sherd_meta_settings_fields, sizeof(sherd_meta_settings), false },
    { "sherd_meta_operation", sherd_meta_operation_fields, sizeof(sherd_meta_operation), false },
    { "sherd_scheme_info", sherd_scheme_info_fields, sizeof(sherd_scheme_info), true },
    { "sherd_masks_info", sherd_masks_info_fields, sizeof(sherd_masks_info), false },
    { "sherd_profile_info", sherd_profile_info_fields, sizeof(sherd_profile_info), false },
    { "sherd_forecast", sherd_forecast_fields, sizeof(sherd_forecast), false },
    { "sherd_rounding", sherd_rounding_fields, sizeof(sherd_rounding), false },
    { "sherd_peer", sherd_peer_fields, sizeof(sherd_peer), false },
    { "sherd_node_report", sherd_node_report_fields, sizeof(sherd_node_report), false },
    { "sherd_node_tasks", sherd_node_tasks_fields, sizeof(sherd_node_tasks), false },
    { "sherd_node_privacy", sherd_node_privacy_fields, sizeof(sherd_node_privacy), false },
    { "sherd_node_info", sherd_node_info_fields, sizeof(sherd_node_info), false },
    { "sherd_local_node", sherd_local_node_fields, sizeof(sherd_local_node), false },
    { "sherd_operation_info", sherd_operation_info_fields, offsetof(sherd_operation_info, cluster),
      false }, /* no values follow */
};

static void members_are_listed_in_order_with_their_types(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        size_t count = 0, end = tables[t].owned ? 0 : sizeof(size_t);
        const sherd_field *f = tables[t].fields(&count);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) {
            size_t size = f[i].length ? sizeof(void *) : f[i].size;
            if (f[i].offset < end || f[i].offset - end >= 8 || !f[i].text || !f[i].unit ||
                (size_of(f[i].type) && size_of(f[i].type) != f[i].size) ||
                (f[i].type == SHERD_FIELD_ENUM) != (f[i].names != NULL))
                fail_msg("%s.%s: at %zu, %zu bytes; the one before ends at %zu", tables[t].name,
                         f[i].name, f[i].offset, f[i].size, end);
            end = f[i].offset + size;
        }
        if (tables[t].size - end >= 8)
            fail_msg("%s: the last member listed ends at %zu of %zu", tables[t].name, end,
                     tables[t].size);
    }
}

static void kinds_of_operations_have_the_names_of_operations(void **state)
{
    (void)state;
    size_t count, i = 0;
    const sherd_field *f = sherd_meta_operation_fields(&count);
    while (i < count && f[i].type != SHERD_FIELD_ENUM) i++;
    assert_string_equal(f[i].name, "kind");
    for (unsigned op = 0; op <= SHERD_OP_EXP; op++) {
        const char *name = sherd_op_name((sherd_op)op);
        assert_string_equal(f[i].names[op], name ? name : "");
    }
    assert_null(f[i].names[SHERD_OP_EXP + 1]);
}

static void a_machine_describes_itself(void **state)
{
    (void)state;
    sherd_machine m = { .size = sizeof m }, none = { .size = 0 };
    char version[32];
    assert_int_equal(sherd_machine_get(&m, NULL), 0);
    assert_true(m.cores >= 1 && m.cores_online >= 1 && m.memory > 1 << 20 && m.blas_core[0]);
    assert_true(m.memory_limit == 0 || m.memory_limit < m.memory);
    assert_int_equal(sherd_machine_get(&none, NULL), SHERD_EINVAL);
    size_t i = 0;
    while (sherd_library_name(i) && strcmp(sherd_library_name(i), "openblas") != 0) i++;
    sherd_library_version(i, version, sizeof version);
    assert_true(version[0] >= '0' && version[0] <= '9');
    sherd_library_version(1000, version, sizeof version);
    assert_string_equal(version, "not loaded");
    assert_int_equal(sherd_blas_ready(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_listed_in_order_with_their_types),
        cmocka_unit_test(kinds_of_operations_have_the_names_of_operations),
        cmocka_unit_test(a_machine_describes_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
