package parse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two pipelines that take two resource groups in opposite orders would wait for each other.
func TestResourceGroupsInOppositeOrders(t *testing.T) {
	o := optionsOf("main")
	o.Dir = directory(t, map[string]string{
		"c1.yml": "j: {resource_group: H, script: x}", "c2.yml": "j: {resource_group: G, script: x}",
		"same.yml": "mid: {resource_group: H, trigger: {include: c2.yml, strategy: depend}}",
	})
	const one = "d1: {resource_group: G, trigger: {include: c1.yml, strategy: depend}}\n"
	_, err := o.Parse("f.yml", []byte(one+"d2: {resource_group: H, trigger: {include: c2.yml, strategy: depend}}"))
	require.ErrorContains(t, err, `f.yml:2:`)
	require.ErrorContains(t, err, `these may wait for each other for ever: "d1" has the resource_group G while its pipeline wants H for "d1/j", and "d2" has H while its pipeline wants G for "d2/j"`)

	p, err := o.Parse("f.yml", []byte(one+"d2: {needs: [d1], resource_group: H, trigger: {include: c2.yml, strategy: depend}}"))
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	require.Contains(t, p.Warnings[0].String(), "two runs at once may wait for each other for ever")

	for _, right := range []string{
		"d2: {resource_group: H, trigger: {include: c2.yml}}",
		"d2: {resource_group: $H, trigger: {include: c2.yml, strategy: depend}}",
		"d2: {resource_group: G, trigger: {include: c1.yml, strategy: depend}}",
		"d2: {resource_group: G, trigger: {include: same.yml, strategy: depend}}",
	} {
		p, err := o.Parse("f.yml", []byte(one+right))
		require.NoError(t, err, right)
		require.Empty(t, p.Warnings, right)
	}
}
