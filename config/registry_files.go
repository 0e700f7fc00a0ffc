package config

import (
	"fmt"
	"strconv"
	"strings"
)

// HasRegistry reports whether there is a registry to ask.
func (r SchemaRegistry) HasRegistry() bool {
	return len(r.URLs) > 0 || r.Type == RegistryGlue
}

// checkFiles is about schemas of files, and what of Glue's is no address.
func (r SchemaRegistry) checkFiles(p *problems, topics []Topic) {
	if r.Type != RegistryGlue && r.Region != "" {
		p.add(registryPath+".region", "", "belongs to type: glue")
	}
	if r.Type != RegistryGlue && r.RegistryName != "" {
		p.add(registryPath+".registry_name", "", "belongs to type: glue")
	}
	if r.Type == RegistryGlue && len(r.URLs) > 1 {
		p.add(registryPath+".urls", "", "has at most one address with type: glue")
	}
	if r.Type == RegistryGlue && (r.Username != "" || r.Token != "" || r.OAuth.TokenURL != "") {
		p.add(registryPath+".type", "leave username, token and oauth out",
			"glue takes the credentials of AWS")
	}
	if r.Type == RegistryFiles && len(r.URLs) > 0 {
		p.add(registryPath+".urls", "", "is refused with type: files, which asks no registry")
	}
	if r.Type == RegistryFiles && len(r.Schemas) == 0 {
		p.add(registryPath+".schemas", "", "is required with type: files")
	}
	for i, entry := range r.Schemas {
		file := entry
		if number, rest, found := strings.Cut(entry, "="); found {
			if _, err := strconv.ParseUint(number, 10, 64); err == nil {
				file = rest
			}
		}
		place := fmt.Sprintf("%s.schemas[%d]", registryPath, i)
		if p.require(place, file) {
			p.readable(place, file)
		}
	}
	for i, t := range topics {
		if t.Schema != "" && len(r.Schemas) == 0 {
			p.add(registryPath+".schemas", "", "is required with topics[%d].schema", i)
			break
		}
	}
}
